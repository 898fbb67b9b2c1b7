#include "cli/bench_onednn.h"

#ifdef HDETACH_WITH_ONEDNN

#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace hdetach::cli {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

memory::desc describe(const memory::dims& dims, Tag tag) {
  return {dims, memory::data_type::f32, tag};
}

class Step final : public OneDnnLstm {
 public:
  Step(const BenchCase& shape, const OneDnnBuffers& buffers)
      : buffers_(buffers), gates_(4 * shape.hidden) {
    const memory::dim T = shape.steps, B = shape.batch, I = shape.input, H = shape.hidden;
    const memory::desc x = describe({T, B, I}, Tag::tnc), h = describe({T, B, H}, Tag::tnc);
    const memory::desc state = describe({1, 1, B, H}, Tag::ldnc);
    const memory::desc bias = describe({1, 1, 4, H}, Tag::ldgo);
    const memory::desc none;  // the last states and peepholes are not wanted
    // LibTorch's [4H, I] read in oneDNN's order of dimensions; oneDNN picks the layout it runs on.
    const memory::desc user_w_ih = describe({1, 1, I, 4, H}, Tag::ldgoi);
    const memory::desc user_w_hh = describe({1, 1, H, 4, H}, Tag::ldgoi);
    const memory::desc any_w_ih = describe({1, 1, I, 4, H}, Tag::any);
    const memory::desc any_w_hh = describe({1, 1, H, 4, H}, Tag::any);
    const auto direction = dnnl::rnn_direction::unidirectional_left2right;

    const dnnl::lstm_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direction, x, state, state, any_w_ih, any_w_hh, bias, h,
         none, none},
        engine_);
    const dnnl::lstm_backward::primitive_desc backward({dnnl::prop_kind::backward,
                                                        direction,
                                                        x,
                                                        state,
                                                        state,
                                                        any_w_ih,
                                                        any_w_hh,
                                                        bias,
                                                        h,
                                                        none,
                                                        none,
                                                        x,
                                                        state,
                                                        state,
                                                        any_w_ih,
                                                        any_w_hh,
                                                        bias,
                                                        h,
                                                        none,
                                                        none},
                                                       engine_, forward);

    const memory w_ih = wrap(user_w_ih, buffers.w_ih), w_hh = wrap(user_w_hh, buffers.w_hh);
    bias_ = memory(bias, engine_);
    const std::unordered_map<int, memory> shared = {
        {DNNL_ARG_SRC_LAYER, wrap(x, buffers.x)},
        {DNNL_ARG_SRC_ITER, wrap(state, buffers.h0)},
        {DNNL_ARG_SRC_ITER_C, wrap(state, buffers.c0)},
        {DNNL_ARG_BIAS, bias_},
        {DNNL_ARG_DST_LAYER, wrap(h, buffers.h)},
        {DNNL_ARG_WORKSPACE, memory(forward.workspace_desc(), engine_)}};

    forward_args_ = shared;
    forward_args_[DNNL_ARG_WEIGHTS_LAYER] =
        reordered(w_ih, forward.weights_layer_desc(), &forward_reorders_);
    forward_args_[DNNL_ARG_WEIGHTS_ITER] =
        reordered(w_hh, forward.weights_iter_desc(), &forward_reorders_);

    backward_args_ = shared;
    backward_args_[DNNL_ARG_WEIGHTS_LAYER] =
        reordered(w_ih, backward.weights_layer_desc(), &backward_reorders_);
    backward_args_[DNNL_ARG_WEIGHTS_ITER] =
        reordered(w_hh, backward.weights_iter_desc(), &backward_reorders_);
    backward_args_[DNNL_ARG_DIFF_DST_LAYER] = wrap(h, buffers.dh);
    backward_args_[DNNL_ARG_DIFF_SRC_LAYER] = memory(x, engine_);
    backward_args_[DNNL_ARG_DIFF_SRC_ITER] = memory(state, engine_);
    backward_args_[DNNL_ARG_DIFF_SRC_ITER_C] = memory(state, engine_);
    backward_args_[DNNL_ARG_DIFF_WEIGHTS_LAYER] =
        summed_into(wrap(user_w_ih, buffers.dw_ih), backward.diff_weights_layer_desc());
    backward_args_[DNNL_ARG_DIFF_WEIGHTS_ITER] =
        summed_into(wrap(user_w_hh, buffers.dw_hh), backward.diff_weights_iter_desc());
    backward_args_[DNNL_ARG_DIFF_BIAS] = summed_into(wrap(bias, buffers.db), bias);

    forward_ = dnnl::lstm_forward(forward);
    backward_ = dnnl::lstm_backward(backward);
  }

  void forward() override {
    float* bias = static_cast<float*>(bias_.get_data_handle());
    for (int64_t i = 0; i < gates_; ++i) bias[i] = buffers_.b_ih[i] + buffers_.b_hh[i];
    run(forward_reorders_);
    forward_.execute(stream_, forward_args_);
    stream_.wait();
  }

  void backward() override {
    for (const memory& gradient : sums_) {
      std::memset(gradient.get_data_handle(), 0, gradient.get_desc().get_size());
    }
    run(backward_reorders_);
    backward_.execute(stream_, backward_args_);
    run(gradient_reorders_);
    stream_.wait();
  }

 private:
  struct Reorder {
    dnnl::reorder primitive;
    memory from, to;
  };

  memory wrap(const memory::desc& desc, const float* data) {
    return {desc, engine_, const_cast<float*>(data)};
  }

  // `user` itself where oneDNN wants its layout, else a copy that `reorders` fills.
  memory reordered(const memory& user, const memory::desc& wanted, std::vector<Reorder>* reorders) {
    if (user.get_desc() == wanted) return user;
    const memory copy(wanted, engine_);
    reorders->push_back({dnnl::reorder(user, copy), user, copy});
    return copy;
  }

  // The gradient oneDNN adds to, which needs a zero start, brought to `user` after each step.
  memory summed_into(const memory& user, const memory::desc& wanted) {
    memory sum = user;
    if (user.get_desc() != wanted) {
      sum = memory(wanted, engine_);
      gradient_reorders_.push_back({dnnl::reorder(sum, user), sum, user});
    }
    sums_.push_back(sum);
    return sum;
  }

  void run(std::vector<Reorder>& reorders) {
    for (Reorder& reorder : reorders) {
      reorder.primitive.execute(stream_, reorder.from, reorder.to);
    }
  }

  OneDnnBuffers buffers_;
  int64_t gates_;  // 4H
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::lstm_forward forward_;
  dnnl::lstm_backward backward_;
  std::unordered_map<int, memory> forward_args_, backward_args_;
  std::vector<Reorder> forward_reorders_, backward_reorders_, gradient_reorders_;
  std::vector<memory> sums_;
  memory bias_;
};

}  // namespace

std::unique_ptr<OneDnnLstm> make_onednn_lstm(const BenchCase& shape, const OneDnnBuffers& buffers,
                                             int threads) {
  // LibTorch may carry an OpenMP runtime of its own; primitives are planned for this many threads.
  omp_set_num_threads(threads);
  return std::make_unique<Step>(shape, buffers);
}

}  // namespace hdetach::cli

#else

namespace hdetach::cli {

std::unique_ptr<OneDnnLstm> make_onednn_lstm(const BenchCase&, const OneDnnBuffers&, int) {
  return nullptr;
}

}  // namespace hdetach::cli

#endif
