#include "xray/measure.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "xray/one_blas_thread.h"
#include "xray/path_orders.h"

namespace hdetach::xray {
namespace {

// The loss's gradient into the last layer's h, [T,B,H] each.
struct Upstream {
  at::Tensor all;             // of the whole loss
  at::Tensor last;            // of each row's last step alone, as the mean over the rows
  std::vector<int64_t> ends;  // [B], those steps
};

Upstream given_upstream(const Probe& probe) {
  const int64_t steps = probe.x.size(0), batch = probe.x.size(1);
  const at::Tensor dh = at::zeros({steps, batch, probe.dh_last.size(1)}, probe.x.options());
  dh[steps - 1] = probe.dh_last;
  return {dh, dh, std::vector<int64_t>(batch, steps - 1)};
}

Upstream upstream_of_loss(const Probe& probe, const at::Tensor& h) {
  const int64_t steps = h.size(0), batch = h.size(1), hidden = h.size(2);
  const at::Tensor targets = probe.targets.contiguous();
  const int64_t* const target = targets.data_ptr<int64_t>();
  std::vector<int64_t> ends(batch, -1);
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t b = 0; b < batch; ++b) {
      if (target[t * batch + b] >= 0) ends[b] = t;
    }
  }
  // Only steps that have a target reach the head, whose classes may be many.
  const at::Tensor places = targets.flatten().ge(0).nonzero().squeeze(1);
  const at::Tensor rows = h.reshape({-1, hidden}).index_select(0, places);
  at::Tensor dlogits = at::softmax(at::linear(rows, probe.head_weight, probe.head_bias), 1);
  const at::Tensor classes = targets.flatten().index_select(0, places).unsqueeze(1);
  dlogits.scatter_add_(1, classes, at::full({places.size(0), 1}, -1.0, h.options()));
  const at::Tensor flat = at::zeros({steps * batch, hidden}, h.options());
  flat.index_copy_(0, places, dlogits.matmul(probe.head_weight));

  Upstream out{(flat / places.size(0)).view({steps, batch, hidden}), {}, ends};
  // Where only the last step has a loss, one pass serves both questions.
  if (places.size(0) == batch) {
    out.last = out.all;
    return out;
  }
  const at::Tensor each = flat.view({steps, batch, hidden});
  out.last = at::zeros_like(each);
  for (int64_t b = 0; b < batch; ++b) {
    if (ends[b] >= 0) out.last[ends[b]][b] = each[ends[b]][b] / batch;
  }
  return out;
}

Split split_of(const std::vector<at::Tensor>& weights) {  // by layer [orders, ..]
  std::vector<double> squares(weights[0].size(0));
  double all = 0;
  for (const at::Tensor& layer : weights) {
    const at::Tensor sum = layer.sum(0);
    all += (sum * sum).sum().item<double>();
    for (size_t k = 0; k < squares.size(); ++k) {
      const at::Tensor order = layer[static_cast<int64_t>(k)];
      squares[k] += (order * order).sum().item<double>();
    }
  }
  for (double& square : squares) square = std::sqrt(square);
  return make_split(std::sqrt(all), std::move(squares));
}

// Of all rows that have a state so long before their last step.
Split split_at(const at::Tensor& state_squares, const std::vector<int64_t>& ends, int64_t lag) {
  const int64_t orders = state_squares.size(0) - 1;
  at::Tensor sum = at::zeros({orders + 1}, state_squares.options());
  for (size_t b = 0; b < ends.size(); ++b) {
    if (ends[b] >= lag)
      sum += state_squares.select(2, static_cast<int64_t>(b)).select(1, ends[b] - lag);
  }
  sum.sqrt_();
  const double* const norms = sum.data_ptr<double>();
  return make_split(norms[orders], {norms, norms + orders});
}

}  // namespace

std::vector<Record> measure(const Probe& probe, const MeasureOptions& options) {
  const c10::NoGradGuard no_grad;
  const OneBlasThread one_blas_thread;
  std::vector<Pass> passes;
  at::Tensor x = probe.x;
  for (const Layer& layer : probe.layers) {
    passes.push_back(run_forward(layer, x, probe.lengths));
    x = passes.back().h.slice(0, 1);
  }
  const Upstream upstream =
      probe.targets.defined() ? upstream_of_loss(probe, x) : given_upstream(probe);

  const int64_t steps = probe.x.size(0), highest = options.highest_order;
  std::vector<Record> records;
  for (const double detach : options.detach) {
    Scales scales;
    if (detach > 0) {
      (options.cell_path ? scales.c : scales.h) = at::full({steps}, 1 - detach, probe.x.options());
    }
    const auto split = [&](const at::Tensor& dh, bool weights) {
      return split_by_order(probe.layers, passes, dh, scales, highest, weights);
    };
    const OrderedGradient all = split(upstream.all, true);
    const bool same = upstream.last.is_same(upstream.all);
    const at::Tensor squares = same ? all.state_squares : split(upstream.last, false).state_squares;

    Record record;
    record.detach = detach;
    record.steps = steps;
    record.orders = order_names(highest);
    record.weights = split_of(all.weights);
    record.lags = options.lags.empty() ? usual_lags(steps) : options.lags;
    for (const int64_t lag : record.lags) {
      record.states.push_back(split_at(squares, upstream.ends, lag));
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace hdetach::xray
