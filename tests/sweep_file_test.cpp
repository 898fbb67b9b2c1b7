// Sweep files: what is read, what is refused and in which words, and the files of experiments/.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/files.h"
#include "tests/mutate.h"
#include "tests/program.h"
#include "train/sweep_file.h"

namespace {

namespace fs = std::filesystem;
using namespace hdetach::train;

const char* const kGood = R"(task = "copy"
seeds = [3, 1]
threshold = 0.9
eval-delays = [200, 400]
[base]
delay = 50
lr = 1e-2
[[setting]]
name = "plain"
paper = "about 80"
paper-eval = [64.85, 48]
[[setting]]
name = "detach-0.5"
detach = 0.5
lr = 1e-4
)";

std::string message(const std::string& text) {
  try {
    parse_sweep(text, "dir/some.toml");
  } catch (const hdetach::toml::Error& error) {
    return error.what();
  }
  return "no error";
}

// kGood with `from` replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// A sweep of captions with these scores of the paper's.
std::string captions(const std::string& scores) {
  return "task = \"caption\"\nseeds = [1]\n[[setting]]\nname = \"plain\"\npaper-scores = " +
         scores + "\n";
}

TEST(SweepFile, ReadsSettingsOverTheBase) {
  const Sweep sweep = parse_sweep(kGood, "dir/some.toml");
  EXPECT_EQ(sweep.task, "copy");
  EXPECT_EQ(sweep.folder, "some");
  EXPECT_EQ(sweep.threshold, 0.9);
  EXPECT_EQ(sweep.seeds, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(sweep.eval_delays, (std::vector<int64_t>{200, 400}));
  ASSERT_EQ(sweep.settings.size(), 2u);
  const SweepSetting &plain = sweep.settings[0], &detach = sweep.settings[1];
  EXPECT_EQ(plain.name, "plain");
  EXPECT_EQ(plain.paper, "about 80");
  EXPECT_EQ(plain.paper_eval, (std::vector<double>{64.85, 48}));
  EXPECT_EQ(plain.config.delay, 50);
  EXPECT_EQ(plain.config.lr, 1e-2);
  EXPECT_EQ(plain.config.hidden, 128);  // the task's default
  EXPECT_EQ(detach.config.detach, 0.5);
  EXPECT_EQ(detach.config.lr, 1e-4);
  EXPECT_TRUE(detach.paper.empty() && detach.paper_eval.empty());
}

TEST(SweepFile, RunsComeSeedBySeed) {
  std::vector<std::string> names;
  for (const SweepRun& run : runs(parse_sweep(kGood, "some.toml"))) {
    names.push_back(run.name);
    EXPECT_EQ(run.config.seed, run.name.back() - '0');
    EXPECT_EQ(run.config.detach, run.setting == 0 ? 0 : 0.5);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"plain/seed-3", "detach-0.5/seed-3", "plain/seed-1",
                                             "detach-0.5/seed-1"}));
}

TEST(SweepFile, FolderAndTaskDefaults) {
  const Sweep sweep = parse_sweep(
      "task = \"mnist\"\nfolder = \"other\"\nseeds = [1]\n[[setting]]\nname = \"a\"\n", "x.toml");
  EXPECT_EQ(sweep.folder, "other");
  EXPECT_EQ(sweep.threshold, 0.99);
  EXPECT_EQ(sweep.settings[0].config.epochs, 200);
}

TEST(SweepFile, CaptionsHaveThePapersScores) {
  const Sweep sweep = parse_sweep(captions("[71.7, 54, 39.7, 28.8, 24.8, 93.0]"), "x.toml");
  EXPECT_EQ(sweep.settings[0].paper_scores,
            (std::vector<double>{71.7, 54, 39.7, 28.8, 24.8, 93.0}));
}

TEST(SweepFile, ChangedFlagsAreThoseThatDiffer) {
  const Sweep sweep = parse_sweep(kGood, "some.toml");
  EXPECT_EQ(changed_flags(sweep.settings[1].config), "--delay 50 --detach 0.5 --lr 0.0001");
  Config permuted = default_config("mnist");
  EXPECT_EQ(changed_flags(permuted), "");
  permuted.permute = true;
  EXPECT_EQ(changed_flags(permuted), "--permute");
}

TEST(SweepFile, RefusesWithThePlaceAndTheFix) {
  const struct {
    std::string text, place, part;
  } cases[] = {
      {with("threshold", "treshold"), ":3:", "\"treshold\""},
      {with("delay = 50", "delay = 0"), ":6:", "delay is 0"},
      {with("delay = 50", "deley = 50"), ":6:", "\"deley\""},
      {with("delay = 50", "seed = 50"), ":6:", "seeds = [1, 2, 3]"},
      {with("delay = 50", "task = \"copy\""), ":6:", "top of a sweep"},
      {with("delay = 50", "name = \"x\""), ":6:", "belongs to a [[setting]]"},
      {with("lr = 1e-2", "stop-epochs = 3"), ":8:", "stop-at"},
      {with("detach = 0.5", "detach = 1.5"), ":14:", "detach is 1.5"},
      {with("detach = 0.5", "data = \"x\""), ":14:", "\"data\""},
      {with("\"detach-0.5\"", "\"plain\""), ":13:", "taken by another"},
      {with("\"detach-0.5\"", "\"../x\""), ":13:", "letters, digits"},
      {with("\"detach-0.5\"", "\"..\""), ":13:", "letters, digits"},
      {with("\"detach-0.5\"", "\"a b\""), ":13:", "letters, digits"},
      {with("\"detach-0.5\"", "\"\""), ":13:", "text in quotes"},
      {with("name = \"plain\"\n", ""), ":8:", "no name"},
      {with("[3, 1]", "[]"), ":2:", "at least one"},
      {with("[3, 1]", "[3, 3]"), ":2:", "3 twice"},
      {with("[3, 1]", "[-1]"), ":2:", "seeds: seed is -1"},
      {with("[3, 1]", "[1.5]"), ":2:", "whole number"},
      {with("[3, 1]", "7"), ":2:", "must be a list"},
      {with("[3, 1]", "[[1]]"), ":2:", "seeds"},
      {with("seeds = [3, 1]", "folder = \"a/b\"\nseeds = [1]"), ":2:", "folder \"a/b\""},
      {with("seeds = [3, 1]\n", ""), ":1:", "seeds is missing"},
      {with("task = \"copy\"\n", ""), ":1:", "task is missing"},
      {with("\"copy\"", "\"walk\""), ":1:", "\"copy\", \"mnist\" or \"caption\""},
      {with("\"copy\"", "\"mnist\""), ":4:", "eval-delays belongs to the task copy"},
      {with("threshold = 0.9", "threshold = 99"), ":3:", "at most 1"},
      {with("threshold = 0.9", "threshold = \"x\""), ":3:", "number"},
      {with("[64.85, 48]", "[64.85]"), ":11:", "has 1 entries, but eval-delays has 2"},
      {with("[64.85, 48]", "[64.85, \"x\"]"), ":11:", "number"},
      {with("delay = 50", "paper-scores = [1]"), ":6:", "belongs to a [[setting]]"},
      {with("paper-eval = [64.85, 48]", "paper-scores = [1, 2, 3, 4, 5, 6]"),
       ":11:", "paper-scores belongs to the task caption"},
      {captions("[1, 2, 3, 4, 5]"), ":5:", "has 5 entries, but must have 6: B-1, B-2"},
      {captions("[1, 2, 3, 4, 5, \"x\"]"), ":5:", "an entry of paper-scores must be a number"},
      {captions("71.7"), ":5:", "paper-scores must be a list"},
      {"task = \"copy\"\nseeds = [1]\n", ":1:", "setting is missing"},
      {"task = \"copy\"\nseeds = [1]\nsetting = [1]\n", ":3:", "[[setting]]"},
      {"task = \"copy\"\nseeds = [1]\nbase = 1\n[[setting]]\nname = \"a\"\n", ":3:", "[base]"},
  };
  for (const auto& c : cases) {
    const std::string said = message(c.text);
    EXPECT_EQ(said.rfind("dir/some.toml" + c.place, 0), 0u) << said << "\nfor\n" << c.text;
    EXPECT_NE(said.find(c.part), std::string::npos) << said;
  }
}

TEST(SweepFile, DamagedFilesNeverDoMoreThanThrow) {
  hdetach::Mutator mutate;
  for (int i = 0; i < 3000; ++i) message(mutate(kGood));
}

std::map<std::string, Sweep> experiments() {
  std::map<std::string, Sweep> all;
  for (const auto& entry : fs::directory_iterator(HDETACH_EXPERIMENTS)) {
    const std::string path = entry.path().string();
    all[entry.path().stem().string()] = parse_sweep(hdetach::files::read(path), path);
  }
  return all;
}

std::set<double> detach_values(const Sweep& sweep) {
  std::set<double> values;
  for (const SweepSetting& setting : sweep.settings) values.insert(setting.config.detach);
  return values;
}

TEST(Experiments, OneFileForEachFigureAndTable) {
  std::set<std::string> names;
  for (const auto& [name, sweep] : experiments()) {
    names.insert(name);
    const std::string text = hdetach::files::read(fs::path(HDETACH_EXPERIMENTS) / (name + ".toml"));
    EXPECT_EQ(text[0], '#') << name;
    EXPECT_NE(text.find("hdetach sweep experiments/" + name + ".toml"), std::string::npos) << name;
    for (const char* part : {"# Expected", "# Cost", "2 CPU cores", "GPU"}) {
      EXPECT_NE(text.find(part), std::string::npos) << name << " does not say: " << part;
    }
    if (name == "demo") continue;
    EXPECT_EQ(sweep.seeds, (std::vector<int64_t>{1, 2, 3, 4, 5})) << name;
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"caption-showtell", "caption-softattention", "cdetach-copy",
                                   "cdetach-mnist", "chrono-1000", "chrono-300", "copy-100",
                                   "copy-300", "damping", "demo", "mnist", "mnist-noclip",
                                   "mnist-search", "onehot", "pmnist", "stacked", "transfer"}));
}

TEST(Experiments, CaptioningIsThePapers) {
  const std::map<std::string, Sweep> all = experiments();
  for (const auto& [name, model] : {std::pair{"caption-showtell", "show-tell"},
                                    std::pair{"caption-softattention", "soft-attention"}}) {
    const Sweep& sweep = all.at(name);
    EXPECT_EQ(detach_values(sweep), (std::set<double>{0, 0.1, 0.25, 0.4, 0.5})) << name;
    for (const SweepSetting& setting : sweep.settings) {
      Config expected = default_config("caption");
      expected.model = model;
      expected.patience = 10;
      expected.detach = setting.config.detach;
      EXPECT_EQ(differences(setting.config, expected), "") << name << " " << setting.name;
    }
  }
}

TEST(Experiments, CaptioningHasTableThree) {
  const std::map<std::string, std::map<std::string, std::vector<double>>> table = {
      {"caption-showtell",
       {{"plain", {71.7, 54.4, 39.7, 28.8, 24.8, 93.0}},
        {"detach-0.25", {72.9, 55.8, 41.7, 31.0, 25.1, 98.0}}}},
      {"caption-softattention",
       {{"plain", {73.2, 56.3, 41.4, 30.1, 25.3, 96.6}},
        {"detach-0.4", {74.7, 58.1, 44.0, 33.1, 26.0, 103.3}}}}};
  const std::map<std::string, Sweep> all = experiments();
  for (const auto& [name, rows] : table) {
    size_t found = 0;
    for (const SweepSetting& setting : all.at(name).settings) {
      if (setting.paper_scores.empty()) continue;
      EXPECT_EQ(setting.paper_scores, rows.at(setting.name)) << name << " " << setting.name;
      ++found;
    }
    EXPECT_EQ(found, rows.size()) << name;
  }
}

TEST(Experiments, CopyingIsThePapers) {
  const std::map<std::string, Sweep> all = experiments();
  for (const auto& [name, sweep] : all) {
    if (sweep.task != "copy" || name == "demo") continue;
    for (const SweepSetting& setting : sweep.settings) {
      Config expected = default_config("copy");  // the paper's, and these:
      const bool chrono = name.rfind("chrono-", 0) == 0;
      expected.delay = name == "copy-300" || name == "damping" || name == "chrono-300" ? 300
                       : name == "chrono-1000"                                         ? 1000
                                                                                       : 100;
      expected.epochs = name == "chrono-1000" ? 200 : 600;
      expected.anneal_epochs = name == "chrono-1000" ? 0 : 40;
      expected.encoding = name == "onehot" ? "onehot" : "scalar";
      expected.init = chrono ? "chrono" : "uniform";
      const Config& config = setting.config;
      expected.detach = config.detach;
      expected.path = name == "cdetach-copy" ? "cell" : "hidden";
      expected.mode = setting.name.rfind("damp", 0) == 0 ? "damp" : "detach";
      expected.layers = name == "stacked" ? 2 : 1;
      expected.layer_draw = setting.name == "separate-0.25" ? "separate" : "joint";
      if (config.stop_at > 0) {
        EXPECT_TRUE(name != "copy-300" && name != "damping" && name != "cdetach-copy") << name;
        expected.stop_at = 1;
        expected.stop_epochs = 20;
      }
      EXPECT_EQ(to_toml(config), to_toml(expected)) << name << " " << setting.name;
    }
  }
  EXPECT_EQ(detach_values(all.at("copy-100")), (std::set<double>{0, 0.25, 0.5}));
  EXPECT_EQ(detach_values(all.at("copy-300")), (std::set<double>{0, 0.25, 0.5}));
  EXPECT_EQ(detach_values(all.at("damping")), (std::set<double>{0.25, 0.5}));
  EXPECT_EQ(detach_values(all.at("cdetach-copy")), (std::set<double>{0.5}));
}

TEST(Experiments, MnistIsThePapers) {
  const std::map<std::string, Sweep> all = experiments();
  for (const auto& [name, sweep] : all) {
    if (sweep.task != "mnist") continue;
    for (const SweepSetting& setting : sweep.settings) {
      Config expected = default_config("mnist");
      const Config& config = setting.config;
      expected.detach = config.detach;
      expected.lr = config.lr;
      expected.permute = name == "pmnist";
      expected.path = name == "cdetach-mnist" ? "cell" : "hidden";
      if (name == "mnist-noclip") {
        expected.clip = 0;
        expected.on_diverge = "continue";
      }
      EXPECT_EQ(to_toml(config), to_toml(expected)) << name << " " << setting.name;
    }
  }
  for (const char* name : {"mnist", "mnist-noclip"}) {
    std::set<std::pair<double, double>> grid;
    for (const SweepSetting& setting : all.at(name).settings) {
      grid.insert({setting.config.lr, setting.config.detach});
    }
    EXPECT_EQ(grid,
              (std::set<std::pair<double, double>>{
                  {1e-3, 0}, {5e-4, 0}, {1e-4, 0}, {1e-3, 0.25}, {5e-4, 0.25}, {1e-4, 0.25}}));
  }
  EXPECT_EQ(detach_values(all.at("mnist-search")), (std::set<double>{0.1, 0.25, 0.4, 0.5}));
  EXPECT_EQ(detach_values(all.at("pmnist")), (std::set<double>{0, 0.25}));
  EXPECT_EQ(detach_values(all.at("cdetach-mnist")), (std::set<double>{0.25}));
}

// Sweeps that share a folder must agree on the runs they share.
TEST(Experiments, SharedRunsAreTheSame) {
  std::map<std::string, std::string> configs;
  int shared = 0;
  for (const auto& [name, sweep] : experiments()) {
    for (const SweepRun& run : runs(sweep)) {
      const auto [it, fresh] = configs.insert({sweep.folder + "/" + run.name, to_toml(run.config)});
      EXPECT_EQ(it->second, to_toml(run.config)) << name << " " << run.name;
      shared += !fresh;
    }
  }
  EXPECT_EQ(shared, 15 + 10 + 5);  // transfer, damping, mnist-search
}

TEST(Experiments, TransferHasTableOne) {
  const Sweep transfer = experiments().at("transfer");
  EXPECT_EQ(transfer.eval_delays, (std::vector<int64_t>{200, 400, 500, 1000, 2000, 5000}));
  const std::map<std::string, std::vector<double>> table = {
      {"plain", {64.85, 48.17, 43.03, 28.82, 19.48, 14.58}},
      {"detach-0.5", {74.79, 54.91, 52.43, 43.54, 34.34, 24.55}},
      {"detach-0.25", {90.72, 77.76, 74.68, 63.19, 51.83, 42.35}}};
  ASSERT_EQ(transfer.settings.size(), table.size());
  for (const SweepSetting& setting : transfer.settings) {
    EXPECT_EQ(setting.paper_eval, table.at(setting.name)) << setting.name;
  }
}

// Work that grows with the square of the runs would take longer than ctest waits.
TEST(SweepFile, ADryRunOfVeryManyRunsEnds) {
  const hdetach::TemporaryFolder folder;
  std::string text = "task = \"copy\"\nseeds = [1";
  for (int seed = 2; seed <= 150000; ++seed) text += ", " + std::to_string(seed);
  hdetach::files::write(folder / "many.toml", text + "]\n[[setting]]\nname = \"plain\"\n");
  const hdetach::program::Result result =
      hdetach::program::run("sweep --dry-run --only seed-150000 --out " +
                            (folder / "out").string() + " " + (folder / "many.toml").string());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(hdetach::program::contains(result.out, "1 runs, 1 to do")) << result.out;
}

}  // namespace
