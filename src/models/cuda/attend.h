// The attention of one step, on a GPU: torch-free, as the kernels of the LSTM.
#pragma once

#include <cstdint>

namespace hdetach::cuda {

struct AttendShape {
  int64_t rows, embedding, positions, size, channels;
};

struct AttendForward {
  AttendShape shape;
  const float* words;      // [rows, embedding]
  const float* query;      // [rows, size]
  const float* projected;  // [rows or more, positions, size]
  const float* weight;     // [rows or more, size]
  const float* features;   // [rows or more, positions, channels]
  float* x;                // [rows, embedding + channels]
  float* attention;        // [rows, positions]
};

struct AttendBackward {
  AttendShape shape;
  const float* query;
  const float* projected;
  const float* weight;
  const float* features;
  const float* attention;
  const float* dx;    // [rows, embedding + channels]
  float* dquery;      // [rows, size]
  float* dprojected;  // [rows or more, positions, size]: added to
  float* dweight;     // [rows or more, size]: added to
};

// Queued on the stream, a cudaStream_t.
void attend_forward(const AttendForward& args, void* stream);
void attend_backward(const AttendBackward& args, void* stream);

}  // namespace hdetach::cuda
