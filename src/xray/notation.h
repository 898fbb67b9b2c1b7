// Notation 1 and theorems 1 and 2 of the paper as code: one step of an LSTM sends dc/dw and dh/dw
// on by A_t (along the cell) and by B_t (through h), for any weight w.
//
//   z_t = (A_t + xi_t B_t) z_{t-1},   z_t = [dc_t/dw; dh_t/dw; 1]
//
// Everything is float64 on the CPU. The readable form is for reading and for tests; what is
// measured at scale (path_orders.h) is made of the same diagonals.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hdetach::xray {

// Gates in the order of torch.nn.LSTM: i, f, g, o.
struct Layer {
  at::Tensor w_ih;  // [4H,I]
  at::Tensor w_hh;  // [4H,H]
  at::Tensor bias;  // [4H], the sum of both
  int64_t hidden() const { return w_hh.size(1); }
  int64_t inputs() const { return w_ih.size(1); }
};

// A forward pass. States stand before and after every step: h[t] goes into step t, h[t+1] comes
// out.
struct Pass {
  at::Tensor x;     // [T,B,I]
  at::Tensor h, c;  // [T+1,B,H]
  int64_t steps() const { return x.size(0); }
  int64_t batch() const { return x.size(1); }
};

// By the op, from zero states. lengths: [B], or undefined where every row has all steps.
Pass run_forward(const Layer& layer, const at::Tensor& x, const at::Tensor& lengths);

// The diagonals of notation 1 for the steps [begin, end), each [end - begin, B, H].
struct Diagonals {
  at::Tensor forget;   // f: F_t
  at::Tensor delta_c;  // o (1 - tanh(c)^2)
  at::Tensor delta_o;  // o (1 - o) tanh(c)
  at::Tensor delta_f;  // f (1 - f) c_{t-1}
  at::Tensor delta_i;  // i (1 - i) g
  at::Tensor delta_g;  // (1 - g^2) i
};
Diagonals diagonals(const Layer& layer, const Pass& pass, int64_t begin, int64_t end);

// What step t reads, as the paper writes it, and a one for the biases: [h_{t-1}, x_t, 1].
at::Tensor read_by_steps(const Pass& pass, int64_t begin, int64_t end);  // [end - begin, B, H+I+1]

// One weight w: an element of W_gate, whose columns are those of read_by_steps().
struct Weight {
  int64_t gate;          // 0..3: i, f, g, o
  int64_t unit, column;  // of W_gate [H, H+I+1]
};

// Step t of one row of the batch.
struct Transition {
  at::Tensor psi, psi_tilde;        // [H,H]: through h into c, and into h
  at::Tensor forget, forget_tilde;  // [H]: the diagonals of F_t and its tilde form
  at::Tensor k, k_tilde;            // [H]: what w itself adds at this step

  at::Tensor a() const;  // A_t [3H,3H]
  at::Tensor b() const;  // B_t [3H,3H]
};
Transition transition(const Layer& layer, const Pass& pass, const Weight& weight, int64_t step,
                      int64_t row);

// z_1 .. z_T of one row: [T, 3H]. h_scale: [T], the paper's xi; c_scale: [T], the same for the cell
// (c-detach). Undefined means ones.
at::Tensor follow(const Layer& layer, const Pass& pass, const Weight& weight, int64_t row,
                  const at::Tensor& h_scale, const at::Tensor& c_scale);

}  // namespace hdetach::xray
