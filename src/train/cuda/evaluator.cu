// Evaluation on the GPU: many sequences at a time, their steps in stretches, from one to the next
// of which h and c are carried. Both cuts follow from the shapes of one model alone.
#include <algorithm>

#include "train/cuda/choose_kernel.h"
#include "train/cuda/device_set.h"
#include "train/cuda/parameters.h"
#include "train/cuda/score.h"

namespace hdetach::train {
namespace {

// Enough rows to fill the device; then as many steps as keep h near 128 MB.
constexpr int64_t kRows = 1000, kStretchFloats = 1 << 25;

class CudaEvaluator : public Evaluator {
 public:
  explicit CudaEvaluator(const ModelShape& shape) : shape_(shape) {
    if (shape.classes > kMostClasses) {
      throw std::runtime_error("the CUDA evaluation takes at most 16 classes");
    }
  }

  std::optional<std::vector<Score>> run(
      const std::vector<std::vector<const float*>>& weights,
      const std::vector<std::shared_ptr<const tasks::SequenceSet>>& sets,
      const std::function<bool(double)>& go_on) override {
    const tasks::SequenceSet& set = *sets.at(0);
    const int64_t count = static_cast<int64_t>(sets.size());
    for (const auto& other : sets) {
      if (other->size() != set.size() || other->steps() != set.steps()) {
        throw std::runtime_error("sets evaluated together must have one size and one length");
      }
    }
    plan(count, set);
    std::vector<SetView> views;
    for (const auto& each : sets) views.push_back(sets_.view(each, stream_));
    stream_.copy(views_.get(), views.data(), views.size());
    for (int64_t r = 0; r < count; ++r) {
      for (size_t i = 0; i < layout_->tensors.size(); ++i) {
        const ParameterTensor& tensor = layout_->tensors[i];
        stream_.copy(parameters_.get() + tensor.weight + r * tensor.numel, weights[r][i],
                     tensor.numel);
      }
    }
    losses_.clear(stream_.get());
    correct_.clear(stream_.get());
    for (int64_t first = 0; first < set.size(); first += rows_) {
      const int64_t rows = std::min(rows_, set.size() - first);
      for (int64_t begin = 0; begin < set.steps(); begin += stretch_) {
        const double done =
            static_cast<double>(first) + static_cast<double>(rows * begin) / set.steps();
        stream_.wait();  // so that an answer of no ends the work soon
        if (!go_on(done / set.size())) return std::nullopt;
        run_stretch(set, first, rows, begin, std::min(stretch_, set.steps() - begin));
      }
    }
    return scores(set);
  }

 private:
  // Memory for so many models on sets like this one; kept from call to call.
  void plan(int64_t count, const tasks::SequenceSet& set) {
    if (count_ == count && steps_ == set.steps() && size_ == set.size()) return;
    count_ = count;
    steps_ = set.steps();
    size_ = set.size();
    rows_ = std::min(kRows, size_);
    const int64_t most = std::clamp<int64_t>(kStretchFloats / (kRows * shape_.hidden), 1, steps_);
    const int64_t stretches = (steps_ + most - 1) / most;
    stretch_ = (steps_ + stretches - 1) / stretches;

    const size_t cells = count * stretch_ * rows_;
    layout_ = std::make_unique<ParameterLayout>(shape_, count);
    parameters_ = DeviceArray<float>(layout_->weights);
    views_ = DeviceArray<SetView>(count);
    x_ = {};  // old memory goes before new memory comes
    c_ = {};
    x_ = DeviceArray<float>(cells * shape_.inputs);
    c_ = DeviceArray<float>(cells * shape_.hidden);
    for (int i = 0; i < 2; ++i) {
      h_[i] = {};
      if (i < shape_.layers) h_[i] = DeviceArray<float>(cells * shape_.hidden);
    }
    const bool carried = stretches > 1;
    state_ = {};
    state_ = DeviceArray<float>(carried ? 2 * shape_.layers * count * rows_ * shape_.hidden : 0);
    losses_ = DeviceArray<double>(count * size_);
    correct_ = DeviceArray<int32_t>(count * size_);
  }

  // The kernel and its workspace; the last rows and the last stretch may be fewer.
  const Kernel& prepare_kernel(const LstmShape& shape) {
    const Kernel& kernel = choose_cuda_kernel(shape);
    const size_t bytes = kernel.forward_workspace(shape, 1);
    if (bytes > workspace_.size()) {
      workspace_ = {};
      workspace_ = DeviceArray<uint8_t>(bytes);
    }
    return kernel;
  }

  float* state(int64_t layer, bool cell) const {
    return state_.get() + (2 * layer + cell) * count_ * rows_ * shape_.hidden;
  }

  // The last step of [R, steps, rows, H], for the next stretch.
  void carry(const float* from, float* to, int64_t rows, int64_t steps) {
    const size_t width = rows * shape_.hidden * sizeof(float);
    cuda::check(
        cudaMemcpy2DAsync(to, width, from + (steps - 1) * rows * shape_.hidden, width * steps,
                          width, count_, cudaMemcpyDeviceToDevice, stream_.get()),
        "cudaMemcpy2DAsync");
  }

  void run_stretch(const tasks::SequenceSet& set, int64_t first, int64_t rows, int64_t begin,
                   int64_t steps) {
    launch_gather(
        {views_.get(), count_, begin, steps, steps_, first, rows, shape_.inputs, x_.get()},
        stream_.get());
    const float* input = x_.get();
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      float* const h = h_[layer % 2].get();
      ForwardArgs args{};
      args.shape = {steps, rows, layer == 0 ? shape_.inputs : shape_.hidden, shape_.hidden, count_};
      args.weights = weights(layer);
      args.x = input;
      if (begin > 0) {
        args.h0 = state(layer, false);
        args.c0 = state(layer, true);
      }
      args.stream = stream_.get();
      args.h = h;
      args.c = c_.get();
      const Kernel& kernel = prepare_kernel(args.shape);
      args.workspace = workspace_.get();
      kernel.forward(args);
      if (begin + steps < steps_) {
        carry(h, state(layer, false), rows, steps);
        carry(c_.get(), state(layer, true), rows, steps);
      }
      input = h;
    }
    const int64_t from = std::max<int64_t>(0, steps_ - set.target_steps() - begin);
    if (from < steps) {
      launch_score({views_.get(), count_, begin, from, steps, steps_, set.target_steps(),
                    steps_ - set.scored_steps(), first, rows, size_, shape_.hidden, shape_.classes,
                    input, parameters_.get() + layout_->head_weight().weight,
                    parameters_.get() + layout_->head_bias().weight, losses_.get(), correct_.get()},
                   stream_.get());
    }
    cuda::check(cudaGetLastError(), "the launch of an evaluation");
  }

  Weights weights(int64_t layer) const {
    const auto at = [&](int64_t i) { return parameters_.get() + layout_->layer(layer, i).weight; };
    return {at(0), at(1), at(2), at(3)};
  }

  std::vector<Score> scores(const tasks::SequenceSet& set) {
    std::vector<double> losses(losses_.size());
    std::vector<int32_t> correct(correct_.size());
    stream_.copy(losses.data(), losses_.get(), losses.size());
    stream_.copy(correct.data(), correct_.get(), correct.size());
    stream_.wait();
    std::vector<Score> out(count_);
    const double size = static_cast<double>(size_);
    for (int64_t r = 0; r < count_; ++r) {
      double loss = 0;
      int64_t right = 0;
      for (int64_t i = 0; i < size_; ++i) {
        loss += losses[r * size_ + i];
        right += correct[r * size_ + i];
      }
      out[r] = {loss / (size * set.target_steps()), right / (size * set.scored_steps())};
    }
    return out;
  }

  ModelShape shape_;
  Stream stream_;
  DeviceSets sets_;
  int64_t count_ = 0, steps_ = 0, size_ = 0;  // what the memory below is for
  int64_t rows_ = 0, stretch_ = 0;
  std::unique_ptr<ParameterLayout> layout_;
  DeviceArray<float> parameters_;
  DeviceArray<SetView> views_;
  DeviceArray<float> x_, h_[2], c_;  // [R, stretch, rows, .]; layers take turns with h
  DeviceArray<float> state_;         // h and c of each layer, [R, rows, H]
  DeviceArray<double> losses_;
  DeviceArray<int32_t> correct_;
  DeviceArray<uint8_t> workspace_;
};

}  // namespace

std::unique_ptr<Evaluator> make_cuda_evaluator(const ModelShape& shape) {
  if (const std::string problem = cuda_problem(); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  return std::make_unique<CudaEvaluator>(shape);
}

}  // namespace hdetach::train
