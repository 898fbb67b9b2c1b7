// Between the two forms of a batch of sequences: the rows of a PackedSequence, where only steps
// that exist are stored, and the steps [T,B,F] that the LSTM takes, in the order of processing.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define HDETACH_HOST_DEVICE __host__ __device__
#else
#define HDETACH_HOST_DEVICE
#endif

namespace hdetach {

struct PackedBatch {
  int64_t steps, batch;
  const int64_t* lengths;    // [B], none longer than the one before; null: all are T
  const int64_t* first_row;  // [T], where the rows of each step begin
  const int64_t* order;      // [B], the place of each sequence among the last states; null: its own
  bool reverse;              // each sequence is processed from its own end

  HDETACH_HOST_DEVICE int64_t length(int64_t b) const {
    return lengths != nullptr ? lengths[b] : steps;
  }
};

template <typename T>
struct PackedData {
  T* steps;  // [T,B,width]
  T* rows;   // [N,width] or null
  T* last;   // [B,width], the states after each sequence's last step, or null
  int64_t width;
};

// How many rows there are to move: without rows to store only each sequence's last step is read.
template <typename T, bool kToSteps>
HDETACH_HOST_DEVICE inline int64_t rows_to_move(const PackedBatch& batch,
                                                const PackedData<T>& data) {
  return !kToSteps && data.rows == nullptr ? batch.batch : batch.steps * batch.batch;
}

// Elements first, first + stride, ... of one of them.
template <typename T, bool kToSteps>
HDETACH_HOST_DEVICE inline void move_row(const PackedBatch& batch, const PackedData<T>& data,
                                         int64_t index, int first, int stride) {
  const int64_t b = index % batch.batch, length = batch.length(b);
  const int64_t t = !kToSteps && data.rows == nullptr ? length - 1 : index / batch.batch;
  T* step = data.steps + (t * batch.batch + b) * data.width;
  if (t >= length) {
    for (int64_t i = first; kToSteps && i < data.width; i += stride) step[i] = T(0);
    return;
  }
  T* row = data.rows;
  if (row != nullptr) {
    row += (batch.first_row[batch.reverse ? length - 1 - t : t] + b) * data.width;
  }
  T* last = t == length - 1 ? data.last : nullptr;
  if (last != nullptr) last += (batch.order != nullptr ? batch.order[b] : b) * data.width;
  for (int64_t i = first; i < data.width; i += stride) {
    if (kToSteps) {
      step[i] = (row != nullptr ? row[i] : T(0)) + (last != nullptr ? last[i] : T(0));
    } else {
      if (row != nullptr) row[i] = step[i];
      if (last != nullptr) last[i] = step[i];
    }
  }
}

// What the first move of a batch does beside: a launch of its own for each would cost the host more
// than the work. The numbers travel as arguments of the launch, so that nobody waits for a copy.
template <typename T>
struct PackedStart {
  const int64_t* numbers;  // lengths, then first rows, on the host
  int64_t count;
  int64_t* table;  // where they belong on the device
  T* zeros;        // memory to clear, the initial states of the batch; or null
  int64_t zero_count;
};

// All rows of h's data and, unless its steps are null, of c's, queued on a cudaStream_t: from rows
// and last into steps, or back. An order that is not one stops the device, as torch's indices do.
template <typename T>
void move_packed_cuda(const PackedBatch& batch, const PackedData<T>& h, const PackedData<T>& c,
                      bool to_steps, void* stream);

// The first of them, from rows into steps.
template <typename T>
void start_packed_cuda(const PackedBatch& batch, const PackedData<T>& data,
                       const PackedStart<T>& start, void* stream);

}  // namespace hdetach
