// hdetach xray as its users meet it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "formats/files.h"
#include "tests/program.h"
#include "tests/usage_errors.h"

namespace {

using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::lines;
using hdetach::program::Result;
using hdetach::program::run;
using nlohmann::json;

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(json::parse(line));
  return out;
}

TEST(XrayCli, RandomNetworksAsATableAndAsJson) {
  const std::string command =
      "xray --random --hidden 24 --steps 30 --weight-scale 0.5,2 --detach 0,0.5 ";
  const Result table = run(command);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  for (const char* part : {"weight scale", "cell share", "rest", "lag:", "29"}) {
    EXPECT_TRUE(contains(table.out, part)) << part << "\n" << table.out;
  }
  const Result result = run(command + "--lags 3,7 --orders 1 --json --threads 1");
  const auto records = json_lines(result.out);
  ASSERT_EQ(records.size(), 4u) << result.err;
  EXPECT_EQ(run(command + "--lags 3,7 --orders 1 --json --threads 2").out, result.out);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(records[i]["epoch"].is_null());
    EXPECT_EQ(records[i]["weight_scale"], i < 2 ? 0.5 : 2.0);
    EXPECT_EQ(records[i]["detach"], i % 2 == 0 ? 0.0 : 0.5);
    EXPECT_EQ(records[i]["orders"], (std::vector<std::string>{"0", "1", "rest"}));
    EXPECT_EQ(records[i]["states"]["lags"], (std::vector<int>{3, 7}));
    EXPECT_EQ(records[i]["states"]["by_order"][1].size(), 3u);
    const auto& orders = records[i]["weights"]["by_order"];
    const double sum = orders[0].get<double>() + orders[1].get<double>() + orders[2].get<double>();
    EXPECT_NEAR(records[i]["weights"]["cell_share"], orders[0].get<double>() / sum, 1e-5);
  }
}

TEST(XrayCli, ARunAndWhatItRecorded) {
  const hdetach::TemporaryFolder root;
  const std::string out = (root / "a").string();
  const Result trained =
      run("train copy --delay 4 --symbols 2 --hidden 8 --batch 4 --train-size 50 --valid-size 20 "
          "--updates-per-epoch 3 --epochs 3 --detach 0.25 --xray-every 1 --quiet --out " +
          out);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string recorded = content(root / "a" / "xray.jsonl");
  EXPECT_EQ(lines(recorded), 3);
  const Result result = run("xray " + out + " --weights last --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string first = result.out.substr(0, result.out.find('\n') + 1);
  EXPECT_EQ(result.out, first + recorded);
  EXPECT_TRUE(contains(recorded, first)) << "the last weights are those of epoch 3";
  const Result table = run("xray " + out + " --detach 0,0.5");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(contains(table.out, "best weights, 8 steps")) << table.out;
  EXPECT_TRUE(contains(table.out, "recorded in training")) << table.out;
  const std::string wrong_lag = "xray " + out + " --lags 1,8";
  hdetach::program::expect_usage_errors({{wrong_lag.c_str(), "--lags", "8"}});
}

// What reads a run takes no number from files that were changed since; a report shows them and
// says so.
TEST(XrayCli, ARunWhoseFilesWereChangedIsRefused) {
  const hdetach::TemporaryFolder root;
  const std::string out = (root / "a").string();
  ASSERT_EQ(
      run("train copy --delay 4 --symbols 2 --hidden 8 --batch 4 --train-size 50 --valid-size "
          "20 --updates-per-epoch 3 --epochs 2 --detach 0.5 --xray-every 1 --quiet --out " +
          out)
          .exit_code,
      0);
  const auto expect_refused = [&](const std::string& name) {
    for (const std::string command : {"xray ", "eval ", "report --json "}) {
      const Result result = run(command + out);
      EXPECT_EQ(result.exit_code, command == "report --json " ? 0 : 1) << command << result.err;
      EXPECT_TRUE(contains(result.out + result.err, "a/" + name)) << command << name << result.out;
    }
  };
  for (const char* name : {"metrics.jsonl", "xray.jsonl"}) {
    const std::string before = content(root / "a" / name);
    hdetach::files::write(root / "a" / name, before.substr(0, before.find('\n') + 1));
    expect_refused(name);
    std::string changed = before;
    changed[before.find('.') + 1] ^= 1;  // a digit becomes another one
    hdetach::files::write(root / "a" / name, changed);
    expect_refused(name);
    std::filesystem::remove(root / "a" / name);
    expect_refused(name);
    hdetach::files::write(root / "a" / name, before);
  }
  const std::string config = content(root / "a/config.toml"), detach = "detach = 0.5";
  ASSERT_TRUE(contains(config, detach));
  std::string changed = config;
  changed.replace(config.find(detach), detach.size(), "detach = 0.4");
  hdetach::files::write(root / "a/config.toml", changed);
  expect_refused("config.toml");
  hdetach::files::write(root / "a/config.toml", config);
  EXPECT_EQ(run("xray " + out).exit_code, 0);
  EXPECT_FALSE(contains(run("report --json " + out).out, "damaged"));
}

TEST(XrayCli, MistakesAreNamedWithTheFlag) {
  hdetach::program::expect_usage_errors({
      {"xray", "RUN", "--random"},
      {"xray runs/a --random", "RUN runs/a", "--random"},
      {"xray --random --weights last", "--weights", "leave it out"},
      {"train caption --model soft-attention --data generated --xray-every 2", "--xray-every is 2",
       "soft-attention"},
  });
  const Result result = run("xray no/such/run");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "no/such/run holds no run")) << result.err;
  const Result help = run("xray --help");
  for (const char* part : {"RUN", "--random", "--hidden", "--steps", "--weight-scale", "0.5,1,2,4",
                           "--detach", "0,0.25,0.5", "--lags", "--orders", "--seed", "--json"}) {
    EXPECT_TRUE(contains(help.out, part)) << part;
  }
}

}  // namespace
