#include "xray/path_orders.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "xray/one_blas_thread.h"

namespace hdetach::xray {
namespace {

// Steps whose gate gradients are kept for one product with what the steps read: memory does not
// grow with the sequence, and the product is large enough to be fast.
constexpr int64_t kStepsAtOnce = 16;

// Rows that one thread takes from the last step to the first. The blocks, and the order in which
// they are added up, do not depend on the number of threads.
constexpr int64_t kRowsOfBlock = 8;

double scale_at(const at::Tensor& scale, int64_t step) {
  return scale.defined() ? scale[step].item<double>() : 1.0;
}

// One layer's backward pass, all orders at once. `upstream` is [1, T, B, H] from the loss, or
// [orders, T, B, H] from the layer above.
class LayerSweep {
 public:
  LayerSweep(const Layer& layer, const Pass& pass, const at::Tensor& upstream, const Scales& scales,
             int64_t orders)
      : layer_(layer),
        pass_(pass),
        upstream_(upstream),
        from_loss_(upstream.size(0) == 1),
        scales_(scales),
        orders_(orders),
        dh_(at::zeros({orders, pass.batch(), layer.hidden()}, pass.x.options())),
        dc_(at::zeros_like(dh_)),
        gates_(at::empty({orders, pass.batch(), 4, layer.hidden()}, pass.x.options())) {}

  // Adds to `squares` [orders + 1, T, B]. Undefined results are not wanted: weights [orders, 4H,
  // H+I+1] and dx [orders, T, B, I], both zero before.
  void run(const at::Tensor& squares, const at::Tensor& weights, const at::Tensor& dx) {
    for (int64_t end = pass_.steps(); end > 0; end -= kStepsAtOnce) {
      const int64_t begin = std::max<int64_t>(0, end - kStepsAtOnce);
      const at::Tensor dgates = stretch(begin, end, squares);
      if (weights.defined()) {
        const at::Tensor read = read_by_steps(pass_, begin, end).flatten(0, 1);
        for (int64_t k = 0; k < orders_; ++k) weights[k].addmm_(dgates[k].flatten(0, 1).t(), read);
      }
      if (dx.defined()) dx.slice(1, begin, end).copy_(dgates.matmul(layer_.w_ih));
    }
  }

 private:
  // Steps end - 1 down to begin; their gate gradients [orders, end - begin, B, 4H].
  at::Tensor stretch(int64_t begin, int64_t end, const at::Tensor& squares) {
    const Diagonals d = diagonals(layer_, pass_, begin, end);
    const at::Tensor from_c = at::stack({d.delta_i, d.delta_f, d.delta_g}, 2);  // [.., B, 3, H]
    const at::Tensor dgates =
        at::empty({orders_, end - begin, pass_.batch(), 4 * layer_.hidden()}, pass_.x.options());
    for (int64_t t = end - 1; t >= begin; --t) {
      const int64_t s = t - begin;
      // What a layer above reads at step t comes after the states of all layers at t in the order
      // of time: it is no part of the gradient into them. What the loss reads is.
      if (!from_loss_) add_squares(squares.select(1, t));
      dh_.narrow(0, 0, upstream_.size(0)).add_(upstream_.select(1, t));
      if (from_loss_) add_squares(squares.select(1, t));
      dc_.addcmul_(dh_, d.delta_c[s]);
      at::Tensor of_c = gates_.narrow(2, 0, 3), of_h = gates_.select(2, 3);
      at::mul_out(of_c, dc_.unsqueeze(2), from_c[s]);
      at::mul_out(of_h, dh_, d.delta_o[s]);
      dgates.select(1, s).copy_(gates_.flatten(2));
      dc_.mul_(d.forget[s]);
      if (scales_.c.defined()) dc_.mul_(scale_at(scales_.c, t));
      if (t > 0) go_through_h(scale_at(scales_.h, t));
    }
    return dgates;
  }

  void add_squares(const at::Tensor& out) {  // [orders + 1, B]
    const at::Tensor state = at::cat({dh_, dc_}, -1);
    out.narrow(0, 0, orders_).add_((state * state).sum(-1));
    const at::Tensor all = state.sum(0);
    out[orders_].add_((all * all).sum(-1));
  }

  // dh of the step before: every order moves up by one, and the last two share the rest.
  void go_through_h(double scale) {
    dh_.zero_();
    if (scale == 0) return;  // and 0 * infinity stays out
    const at::Tensor back =
        at::mm(gates_.view({-1, 4 * layer_.hidden()}), layer_.w_hh).mul_(scale).view(dh_.sizes());
    dh_.narrow(0, 1, orders_ - 1).copy_(back.narrow(0, 0, orders_ - 1));
    dh_[orders_ - 1].add_(back[orders_ - 1]);
  }

  const Layer& layer_;
  const Pass& pass_;
  const at::Tensor upstream_;
  const bool from_loss_;
  const Scales& scales_;
  const int64_t orders_;
  at::Tensor dh_, dc_;  // [orders,B,H], into the states after the step under way
  at::Tensor gates_;    // [orders,B,4,H], of the step under way
};

Pass rows_of_pass(const Pass& pass, int64_t begin, int64_t end) {
  const auto rows = [&](const at::Tensor& tensor) {
    return tensor.slice(1, begin, end).contiguous();
  };
  return {rows(pass.x), rows(pass.h), rows(pass.c)};
}

OrderedGradient split_rows(const std::vector<Layer>& layers, const std::vector<Pass>& passes,
                           const at::Tensor& dh, const Scales& scales, int64_t orders,
                           bool want_weights) {
  const int64_t steps = dh.size(0), batch = dh.size(1);
  OrderedGradient out;
  out.weights.resize(layers.size());
  out.state_squares = at::zeros({orders + 1, steps, batch}, dh.options());
  at::Tensor upstream = dh.unsqueeze(0);
  for (size_t l = layers.size(); l-- > 0;) {
    const Layer& layer = layers[l];
    const int64_t columns = layer.hidden() + layer.inputs() + 1;
    at::Tensor dx;
    if (l > 0) dx = at::zeros({orders, steps, batch, layer.inputs()}, dh.options());
    if (want_weights) {
      out.weights[l] = at::zeros({orders, 4 * layer.hidden(), columns}, dh.options());
    }
    LayerSweep(layer, passes[l], upstream, scales, orders)
        .run(out.state_squares, out.weights[l], dx);
    upstream = dx;
  }
  return out;
}

}  // namespace

OrderedGradient split_by_order(const std::vector<Layer>& layers, const std::vector<Pass>& passes,
                               const at::Tensor& dh, const Scales& scales, int64_t highest,
                               bool want_weights) {
  const int64_t batch = dh.size(1), blocks = (batch + kRowsOfBlock - 1) / kRowsOfBlock;
  std::vector<OrderedGradient> parts(blocks);
  const OneBlasThread one_blas_thread;
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    const c10::NoGradGuard no_grad;
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kRowsOfBlock, end = std::min(begin + kRowsOfBlock, batch);
      std::vector<Pass> rows;
      for (const Pass& pass : passes) rows.push_back(rows_of_pass(pass, begin, end));
      parts[block] =
          split_rows(layers, rows, dh.slice(1, begin, end), scales, highest + 2, want_weights);
    }
  });
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> squares;
  for (const OrderedGradient& part : parts) squares.push_back(part.state_squares);
  OrderedGradient out{parts[0].weights, at::cat(squares, 2)};
  for (int64_t block = 1; want_weights && block < blocks; ++block) {
    for (size_t l = 0; l < layers.size(); ++l) out.weights[l].add_(parts[block].weights[l]);
  }
  return out;
}

}  // namespace hdetach::xray
