#include "report/page_data.h"

#include <fmt/format.h>
#include <time.h>

#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "report/summary.h"

namespace hdetach::report {
namespace {

constexpr size_t kMostNotices = 100;
// Of a run. The program writes 7 scores and 8 samples; a wrong file cannot ask for all memory.
constexpr size_t kMostScores = 32, kMostSamples = 64;

// Bytes that are not UTF-8 become U+FFFD.
std::string json_string(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_strings(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? "," : "") + json_string(text);
  return out + "]";
}

// Within a <script> only "</" and "<!" are special, and U+2028 and U+2029 end a line of JavaScript.
// Outside of strings JSON has none of these, so that an escape can stand for each.
std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '\xE2' && (json.compare(i, 3, "\xE2\x80\xA8") == 0 ||
                                     json.compare(i, 3, "\xE2\x80\xA9") == 0)) {
      out += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

class DataWriter {
 public:
  std::string write(const Experiments& experiments, const PageHeading& heading) {
    out_ = fmt::format("{{\"format\":1,\"title\":{},\"about\":{},\"made\":{},\"watching\":{}",
                       json_string(heading.title), json_strings(heading.about),
                       json_string(heading.made), heading.watching);
    std::vector<std::string> notices = experiments.notices.all();
    if (notices.size() > kMostNotices) {
      const size_t more = notices.size() - kMostNotices;
      notices.resize(kMostNotices);
      notices.push_back(fmt::format("and {} more notices", more));
    }
    out_ += ",\"notices\":" + json_strings(notices) + ",\"experiments\":[";
    list(experiments.all, [&](const Experiment& one) { experiment(one); });
    return script_safe(out_ + "]}\n");
  }

 private:
  // After the last of some items that each put a comma behind them.
  void drop_comma() {
    if (out_.back() == ',') out_.pop_back();
  }

  template <class Items, class Write>
  void list(const Items& items, const Write& write) {
    for (const auto& item : items) {
      write(item);
      out_ += ',';
    }
    drop_comma();
  }

  void number(double value, int digits) {
    if (std::isfinite(value)) {
      fmt::format_to(std::back_inserter(out_), "{:.{}g}", value, digits);
    } else {
      out_ += "null";
    }
  }

  void experiment(const Experiment& experiment) {
    const train::Sweep& sweep = experiment.record.sweep;
    const Measure shown_by = measure(experiment.record);
    const std::string chance = shown_by.chance ? fmt::format("{:g}", *shown_by.chance) : "null";
    out_ += fmt::format(
        "{{\"name\":{},\"task\":{},\"measure\":{{\"name\":\"{}\",\"sign\":\"{}\"}},"
        "\"chance\":{},\"threshold\":{:g}",
        json_string(experiment.name), json_string(sweep.task), shown_by.name, shown_by.sign, chance,
        sweep.threshold);
    const SummaryTable table = summary_table(experiment.record);
    out_ += ",\"table\":{\"columns\":" + json_strings(table.columns) + ",\"rows\":[";
    list(table.rows, [&](const std::vector<std::string>& row) { out_ += json_strings(row); });
    out_ += "]},\"settings\":[";
    for (size_t i = 0; i < experiment.shown.size(); ++i) {
      out_ += fmt::format("{{\"name\":{},\"runs\":[", json_string(sweep.settings[i].name));
      list(experiment.shown[i], [&](const ShownRun& one) { run(one); });
      out_ += "]},";
    }
    drop_comma();
    out_ += "]}";
  }

  void run(const ShownRun& run) {
    const RunRecord& record = run.files->record;
    std::string status = record.epochs.empty() ? "waiting" : "unfinished", message;
    if (record.result) {
      status = record.result->status;
      message = record.result->message;
    }
    out_ += fmt::format(
        "\n{{\"name\":{},\"folder\":{},\"seed\":{},\"status\":{},\"message\":{},\"curves\":{{",
        json_string(run.name), json_string(run.folder),
        run.seed ? std::to_string(*run.seed) : "null", json_string(status), json_string(message));
    curves(record.epochs);
    out_ += "},\"scores\":{";
    scores(record.epochs);
    out_ += "},\"samples\":[";
    samples(record.epochs);
    out_ += "],\"test\":{";
    test(record);
    out_ += "},\"xray\":[";
    list(run.files->xray, [&](const std::string& line) { out_ += line; });
    out_ += "],\"config\":{";
    list(run.files->config, [&](const std::pair<std::string, std::string>& setting) {
      out_ += json_string(setting.first) + ":" + json_string(setting.second);
    });
    out_ += "},\"sessions\":[";
    list(run.files->sessions, [&](const std::string& line) { out_ += line; });
    out_ += "]}";
  }

  void curves(const std::vector<Epoch>& epochs) {
    const auto whole = [&](const char* name, int64_t Epoch::*member) {
      out_ += fmt::format("\"{}\":[", name);
      list(epochs, [&](const Epoch& epoch) {
        fmt::format_to(std::back_inserter(out_), "{}", epoch.*member);
      });
      out_ += "],";
    };
    const auto real = [&](const char* name, double Epoch::*member, int digits) {
      out_ += fmt::format("\"{}\":[", name);
      list(epochs, [&](const Epoch& epoch) { number(epoch.*member, digits); });
      out_ += "],";
    };
    whole("epoch", &Epoch::epoch);
    whole("update", &Epoch::update);
    real("seconds", &Epoch::seconds, 6);
    real("train_loss", &Epoch::train_loss, 4);
    real("valid_loss", &Epoch::valid_loss, 4);
    real("valid_measure", &Epoch::valid_measure, 5);
    real("grad_norm_mean", &Epoch::grad_norm_mean, 4);
    real("grad_norm_max", &Epoch::grad_norm_max, 4);
    real("clipped", &Epoch::clipped, 4);
    whole("skipped", &Epoch::skipped);
    real("updates_per_second", &Epoch::updates_per_second, 4);
    drop_comma();
  }

  void scores(const std::vector<Epoch>& epochs) {
    std::map<std::string, std::vector<double>> by_name;
    for (size_t i = 0; i < epochs.size(); ++i) {
      for (const auto& [name, score] : epochs[i].caption_scores) {
        if (by_name.size() >= kMostScores && by_name.count(name) == 0) continue;
        std::vector<double>& values = by_name[name];
        values.resize(epochs.size(), NAN);
        values[i] = score;
      }
    }
    list(by_name, [&](const auto& entry) {
      out_ += json_string(entry.first) + ":[";
      list(entry.second, [&](double value) { number(value, 5); });
      out_ += "]";
    });
  }

  void samples(const std::vector<Epoch>& epochs) {
    std::map<int64_t, std::vector<std::string>> by_image;
    for (size_t i = 0; i < epochs.size(); ++i) {
      for (const train::SampleCaption& sample : epochs[i].samples) {
        if (by_image.size() >= kMostSamples && by_image.count(sample.image) == 0) continue;
        std::vector<std::string>& captions = by_image[sample.image];
        captions.resize(epochs.size());
        captions[i] = sample.caption;
      }
    }
    list(by_image, [&](const auto& entry) {
      out_ += fmt::format("{{\"image_id\":{},\"captions\":{}}}", entry.first,
                          json_strings(entry.second));
    });
  }

  void test(const RunRecord& record) {
    if (!record.result) return;
    std::map<std::string, double> values = record.result->test_caption_scores;
    if (values.empty() && record.result->test_measure) {
      values[record.result->measure_is_cider ? "CIDEr" : "accuracy"] = *record.result->test_measure;
    }
    list(values, [&](const auto& entry) {
      out_ += json_string(entry.first) + ":";
      number(entry.second, 5);
    });
  }

  std::string out_;
};

}  // namespace

std::string page_data(const Experiments& experiments, const PageHeading& heading) {
  return DataWriter().write(experiments, heading);
}

std::string utc_time_now() {
  const time_t now = ::time(nullptr);
  tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[32];
  ::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace hdetach::report
