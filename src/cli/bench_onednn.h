// oneDNN's LSTM primitives as a training step: the strongest CPU peer, which cannot detach.
#pragma once

#include <memory>

#include "cli/bench_case.h"

namespace hdetach::cli {

// All row-major float32, owned by the caller and alive as long as the step.
struct OneDnnBuffers {
  const float* x;     // [T, B, I]
  const float* h0;    // [B, H]
  const float* c0;    // [B, H]
  const float* w_ih;  // [4H, I], gates i f g o
  const float* w_hh;  // [4H, H]
  const float* b_ih;  // [4H]
  const float* b_hh;  // [4H]
  const float* dh;    // [T, B, H]
  float* h;           // [T, B, H] out, as are the rest
  float* dw_ih;       // [4H, I]
  float* dw_hh;       // [4H, H]
  float* db;          // [4H], the gradient of either bias
};

class OneDnnLstm {
 public:
  virtual ~OneDnnLstm() = default;
  // Both include the weights' reorders: a training step has new weights every time.
  virtual void forward() = 0;
  virtual void backward() = 0;
};

// Null when the program was built without oneDNN.
std::unique_ptr<OneDnnLstm> make_onednn_lstm(const BenchCase& shape, const OneDnnBuffers& buffers,
                                             int threads);

}  // namespace hdetach::cli
