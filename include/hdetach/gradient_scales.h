// The method's only random draw: which steps keep their gradient, and how much of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hdetach {

enum class Path { kHidden, kCell };          // which state's gradient is steered
enum class Mode { kDetach, kDamp };          // a random 0 or 1, or the constant 1 - detach
enum class LayerDraw { kJoint, kSeparate };  // one draw for all layers, or one for each

struct GradientPolicy {
  double detach = 0.0;                   // probability that a step is blocked, or the damping
  Path path = Path::kHidden;             // kCell is the paper's c-detach ablation
  Mode mode = Mode::kDetach;             // kDamp multiplies every step by 1 - detach
  LayerDraw layers = LayerDraw::kJoint;  // the paper's stacked LSTMs draw once for all layers
  bool per_sample = false;               // draw for each row of the batch: scales [T,B], not [T]
};

// A counter-based generator: draw number n depends on seed and n alone, so the whole state is two
// numbers, the same on every machine.
class ScaleGenerator {
 public:
  struct State {
    uint64_t seed = 0;
    uint64_t drawn = 0;  // numbers drawn so far
  };

  explicit ScaleGenerator(uint64_t seed) : state_{seed, 0} {}
  explicit ScaleGenerator(State state) : state_(state) {}

  double uniform();  // in [0,1)
  State state() const { return state_; }
  void set_state(State state) { state_ = state; }

 private:
  State state_;
};

// What hdetach::lstm takes, one entry for each layer (and direction). An undefined tensor means
// ones: nothing to steer.
struct GradientScales {
  std::vector<at::Tensor> h_scale;  // each [T] or [T,B] float32, or undefined
  std::vector<at::Tensor> c_scale;  // likewise
};

// Draws the scales of one forward pass. With detach 0 nothing is drawn and every entry is
// undefined. Throws c10::Error when detach is not in [0,1].
GradientScales sample(const GradientPolicy& policy, int64_t steps, int64_t batch, int64_t layers,
                      ScaleGenerator& generator);

}  // namespace hdetach
