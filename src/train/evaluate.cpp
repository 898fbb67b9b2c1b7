#include "train/evaluate.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace hdetach::train {
namespace {

// Rows side by side, enough to feed the kernel; then as many steps as keep h near 8 MB. Both follow
// from the shapes alone, so the sums and their bits do too.
constexpr int64_t kRows = 500, kStretchFloats = 1 << 21;

}  // namespace

std::optional<Score> evaluate(SequenceClassifier& model, const tasks::SequenceSet& set,
                              const std::function<bool(double)>& go_on) {
  const SoftmaxHead head = model.head();
  const int64_t steps = set.steps(), first_target = steps - set.target_steps(),
                first_scored = steps - set.scored_steps();
  const int64_t stretch = std::clamp(kStretchFloats / (kRows * head.hidden), int64_t{1}, steps);
  std::vector<uint8_t> target;
  double loss = 0;
  int64_t correct = 0;
  for (int64_t first = 0; first < set.size(); first += kRows) {
    std::vector<int64_t> rows(std::min(kRows, set.size() - first));
    std::iota(rows.begin(), rows.end(), first);
    const int64_t batch = static_cast<int64_t>(rows.size());
    c10::optional<LSTMState> state;
    for (int64_t begin = 0; begin < steps; begin += stretch) {
      const double done = static_cast<double>(first) + static_cast<double>(batch * begin) / steps;
      if (!go_on(done / set.size())) return std::nullopt;
      const int64_t end = std::min(begin + stretch, steps);
      const at::Tensor x = at::empty({end - begin, batch, set.inputs()});
      set.read_inputs(rows, begin, end, x.data_ptr<float>());
      const at::Tensor h = model.run(x, state);

      const int64_t from = std::max(begin, first_target);
      if (from >= end) continue;
      target.resize((end - from) * batch);
      set.read_targets(rows, from, end, target.data());
      const HeadScore part =
          score(head, h.data_ptr<float>() + (from - begin) * batch * head.hidden, target.data(),
                (end - from) * batch, std::max<int64_t>(first_scored - from, 0) * batch);
      loss += part.loss;
      correct += part.correct;
    }
  }
  const double size = static_cast<double>(set.size());
  return Score{loss / (size * set.target_steps()), correct / (size * set.scored_steps())};
}

}  // namespace hdetach::train
