#include "report/documents/pair_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "report/documents/markdown.h"
#include "report/documents/result_tables.h"
#include "report/documents/wording.h"

namespace hdetach::report {
namespace {

// How often B was ahead of A.
struct Tally {
  int of = 0, ahead = 0, equal = 0;

  void count(bool is_ahead, bool is_equal) {
    ++of;
    ahead += is_ahead;
    equal += is_equal;
  }
  std::string text() const {
    return fmt::format("{} of {}{}", ahead, of,
                       equal > 0 ? fmt::format(", equal in {}", equal) : "");
  }
};

struct Comparison {
  int seeds = 0, unfinished = 0;
  Tally better, sooner;  // sooner: of the pairs in which one reaches the threshold
  std::optional<Spread> best, late, test;  // B minus A
};

size_t place_of(const Experiment& experiment, const std::string& name) {
  const auto& settings = experiment.record.sweep.settings;
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const train::SweepSetting& s) { return s.name == name; });
  return static_cast<size_t>(found - settings.begin());
}

void compare(const RunRecord& a, const RunRecord& b, double threshold, Comparison& out) {
  ++out.seeds;
  out.unfinished += !a.result || !b.result;
  const double gain = best_epoch(b)->valid_measure - best_epoch(a)->valid_measure;
  out.better.count(gain > 0, gain == 0);
  add(out.best, gain);
  add(out.late, *late_accuracy(b) - *late_accuracy(a));
  const Epoch* const first_a = first_epoch_at(a, threshold);
  const Epoch* const first_b = first_epoch_at(b, threshold);
  if (first_a != nullptr && first_b != nullptr) {
    out.sooner.count(first_b->epoch < first_a->epoch, first_b->epoch == first_a->epoch);
  } else if (first_a != nullptr || first_b != nullptr) {
    out.sooner.count(first_b != nullptr, false);
  }
  if (a.result && b.result && a.result->test_measure && b.result->test_measure) {
    add(out.test, *b.result->test_measure - *a.result->test_measure);
  }
}

Comparison compare(const Experiment& experiment, const std::string& a, const std::string& b) {
  const size_t of_a = place_of(experiment, a), of_b = place_of(experiment, b);
  Comparison out;
  for (size_t i = 0; i < experiment.shown[of_a].size(); ++i) {
    for (size_t j = 0; j < experiment.shown[of_b].size(); ++j) {
      const auto &seed = experiment.shown[of_a][i].seed, &other = experiment.shown[of_b][j].seed;
      if (!seed || seed != other) continue;
      compare(experiment.record.runs[of_a][i], experiment.record.runs[of_b][j],
              experiment.record.sweep.threshold, out);
    }
  }
  if (out.seeds == 0) throw std::runtime_error(fmt::format("{} and {} share no seed", a, b));
  return out;
}

}  // namespace

std::string pairs_markdown(const Experiment& experiment,
                           const std::vector<std::pair<std::string, std::string>>& pairs) {
  const train::Sweep& sweep = experiment.record.sweep;
  std::vector<std::string> names, seeds, better, best, late, test, sooner;
  bool tested = false;
  for (const auto& [a, b] : pairs) {
    const Comparison row = compare(experiment, a, b);
    const auto points = [&](const std::optional<Spread>& spread) {
      return spread_text(spread, shown_decimals(sweep), signed_points);
    };
    names.push_back(markdown_text(b) + " against " + markdown_text(a));
    seeds.push_back(std::to_string(row.seeds) +
                    (row.unfinished > 0 ? fmt::format(" ({} unfinished)", row.unfinished) : ""));
    better.push_back(row.better.text());
    best.push_back(points(row.best));
    late.push_back(points(row.late));
    test.push_back(points(row.test));
    tested |= row.test.has_value();
    sooner.push_back(row.sooner.of > 0 ? row.sooner.text() : "neither reaches it");
  }
  const std::string points = sweep.task == "caption" ? "points of CIDEr" : "points";
  MarkdownTable table;
  table.add("pair", names);
  table.add("seeds", seeds);
  table.add("better best validation in", better);
  table.add("difference in " + points + ", best validation: mean (min to max)", best);
  table.add("medians of the last 20 epochs", late);
  if (tested) table.add("test", test);
  table.add("sooner at " + threshold_text(sweep) + ", of the seeds where one gets there", sooner);
  return table.text();
}

}  // namespace hdetach::report
