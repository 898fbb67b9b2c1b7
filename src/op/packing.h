// The rows of a packed sequence as steps of hdetach::lstm, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hdetach {

struct PackedStates {
  at::Tensor h_rows, h_last, c_rows, c_last;
};

struct Packing {
  int64_t steps = 0, batch = 0, rows = 0;
  at::Tensor order;  // sorted_indices: [B], which sequence of the batch each one is; or undefined
  at::Tensor table;  // [B+T] on the data's device: lengths, then where the rows of each step begin;
                     // undefined where all are of length T
  std::vector<int64_t> to_send;  // the table, until it is on a GPU
  at::Tensor to_clear;           // what zero_state() gave, until it is zero

  static Packing of(const at::Tensor& data, const at::Tensor& batch_sizes,
                    const at::Tensor& sorted_indices);

  // [B], or undefined.
  at::Tensor lengths() const;
  // [B,H] of zeros.
  at::Tensor zero_state(int64_t hidden, const at::TensorOptions& options);
  // [N,F] -> [T,B,F] in the order of processing, zero where a sequence has no step. On a GPU the
  // first call also fills the table and the zero state: nothing may read them before.
  at::Tensor to_steps(const at::Tensor& rows, bool reverse);
  // [T,B,F] of h and c -> their rows [N,F], c's if wanted, and [1,B,F] of each: the states after
  // each sequence's last step, in the order of the batch before sorting.
  PackedStates to_rows(const at::Tensor& h, const at::Tensor& c, bool reverse,
                       bool want_cells) const;
};

}  // namespace hdetach
