// The program as its users meet it: output, messages and exit codes of the built binary.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program.h"
#include "tests/usage_errors.h"

namespace {

using hdetach::program::contains;
using hdetach::program::lines;
using hdetach::program::Result;
using hdetach::program::run;
using nlohmann::json;

std::vector<std::string> kernel_names() {
  const json info = json::parse(run("info --json").out);
  std::vector<std::string> names;
  for (const json& kernel : info["kernels"]) names.push_back(kernel["name"]);
  return names;
}

TEST(Cli, WithoutACommandItPrintsHelpAndFails) {
  const Result result = run("");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "info")) << result.err;
  EXPECT_TRUE(contains(result.err, "bench")) << result.err;
}

TEST(Cli, HelpNamesEveryFlagAndItsDefault) {
  const Result program = run("--help");
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_TRUE(contains(program.out, "bench")) << program.out;
  const Result bench = run("bench --help");
  EXPECT_EQ(bench.exit_code, 0);
  for (const char* part :
       {"copy100", "copy300", "mnist", "caption", "wide", "--shape", "--detach", "0,0.25,0.5,1",
        "--kernel", "active one", "--threads", "--repeats", "--no-peers", "--json"}) {
    EXPECT_TRUE(contains(bench.out, part)) << part << " is missing in\n" << bench.out;
  }
  // Older and newer versions of CLI11 write a default differently.
  EXPECT_TRUE(contains(bench.out, "=7") || contains(bench.out, "[7]")) << bench.out;
}

TEST(Cli, VersionIsTheOneOfInfo) {
  const Result result = run("--version");
  EXPECT_EQ(result.exit_code, 0);
  const json info = json::parse(run("info --json").out);
  EXPECT_TRUE(contains(result.out, info["version"].get<std::string>())) << result.out;
  EXPECT_TRUE(contains(result.out, info["commit"].get<std::string>())) << result.out;
}

TEST(Cli, UsageErrorsNameTheFlagAndTheValue) {
  hdetach::program::expect_usage_errors({
      {"nosuch", "nosuch", "nosuch"},
      {"--nosuch", "--nosuch", "--nosuch"},
      {"info --nosuch", "--nosuch", "--nosuch"},
      {"bench nosuch", "CASES", "nosuch"},
      {"bench caption --repeats 0", "--repeats", "0"},  // the size, not the command
      {"bench --shape 3,2,1", "--shape", "3,2,1"},
      {"bench --shape 3,2,1,0", "--shape", "3,2,1,0"},
      {"bench --shape 3,2,1,4,5", "--shape", "3,2,1,4,5"},
      {"bench --shape 3,2,x,4", "--shape", "3,2,x,4"},
      {"bench --shape 3,2,1,99999999999999999999", "--shape", "99999999999999999999"},
      {"bench copy100 --shape 3,2,1,4", "--shape", "CASES"},
      {"bench --detach 0,1.5", "--detach", "1.5"},
      {"bench --detach -0.1", "--detach", "-0.1"},
      {"bench --detach half", "--detach", "half"},
      {"bench --kernel nosuch", "--kernel", "nosuch"},
      {"bench --threads 0", "--threads", "0"},
      {"bench --threads two", "--threads", "two"},
      {"bench --repeats 0", "--repeats", "0"},
      {"bench --repeats 1.5", "--repeats", "1.5"},
  });
}

TEST(Cli, AnUnknownKernelListsTheKernels) {
  const Result flag = run("bench --shape 3,2,1,4 --kernel nosuch");
  const Result variable = run("bench --shape 3,2,1,4", "HDETACH_KERNEL=nosuch");
  const Result info = run("info", "HDETACH_KERNEL=nosuch");
  EXPECT_EQ(flag.exit_code, 2);
  EXPECT_EQ(variable.exit_code, 1);
  EXPECT_EQ(info.exit_code, 1);
  for (const Result& result : {variable, info}) {
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind("hdetach: error: ", 0), 0u) << result.err;
    EXPECT_EQ(lines(result.err), 1) << result.err;
    EXPECT_TRUE(contains(result.err, "HDETACH_KERNEL")) << result.err;
  }
  const auto names = kernel_names();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    EXPECT_TRUE(contains(flag.err, name)) << flag.err;
    EXPECT_TRUE(contains(variable.err, name)) << variable.err;
    EXPECT_TRUE(contains(info.err, name)) << info.err;
  }
}

TEST(Cli, AKernelThisMachineLacksFailsWithTheReason) {
  const json info = json::parse(run("info --json").out);
  for (const json& kernel : info["kernels"]) {
    if (kernel["available"]) continue;
    const std::string name = kernel["name"];
    const Result result = run("bench --shape 3,2,1,4 --kernel " + name);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(lines(result.err), 1) << result.err;
    EXPECT_TRUE(contains(result.err, name)) << result.err;
    EXPECT_TRUE(contains(result.err, kernel["reason"].get<std::string>())) << result.err;
  }
}

TEST(Cli, InfoTextShowsWhatItsJsonHolds) {
  const Result text = run("info");
  EXPECT_EQ(text.exit_code, 0);
  const json info = json::parse(run("info --json").out);
  for (const char* key : {"version", "commit", "libtorch", "cpu", "gpu", "active_kernel"}) {
    ASSERT_TRUE(info[key].is_string()) << key;
    EXPECT_FALSE(info[key].get<std::string>().empty()) << key;
    EXPECT_TRUE(contains(text.out, info[key].get<std::string>())) << key << "\n" << text.out;
  }
  EXPECT_GE(info["threads"].get<int>(), 1);
  for (const char* feature : {"avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16"}) {
    ASSERT_TRUE(info["features"][feature].is_boolean()) << feature;
    const bool denied = contains(text.out, std::string("no-") + feature);
    EXPECT_NE(info["features"][feature].get<bool>(), denied) << feature << "\n" << text.out;
  }
  bool active_is_available = false;
  for (const json& kernel : info["kernels"]) {
    EXPECT_TRUE(contains(text.out, kernel["name"].get<std::string>())) << text.out;
    const std::string reason = kernel.value("reason", "");
    EXPECT_EQ(kernel["available"].get<bool>(), reason.empty()) << kernel;
    if (kernel["name"] == info["active_kernel"]) active_is_available = kernel["available"];
  }
  EXPECT_TRUE(active_is_available);
  EXPECT_EQ(info["kernels"].back()["name"], "reference");
}

TEST(Cli, InfoFollowsTheForcedKernel) {
  const json info = json::parse(run("info --json", "HDETACH_KERNEL=reference").out);
  EXPECT_EQ(info["active_kernel"], "reference");
}

TEST(Cli, BenchJsonHoldsEveryField) {
  const std::string best = json::parse(run("info --json").out)["active_kernel"];
  const Result result = run("bench --shape 6,3,2,5 --detach 0,0.5 --kernel " + best +
                            ",reference --threads 1 --repeats 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");  // no progress where stderr is no terminal
  std::istringstream stream(result.out);
  std::vector<json> rows;
  for (std::string line; std::getline(stream, line);) rows.push_back(json::parse(line));
  ASSERT_EQ(rows.size(), 4u) << result.out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    EXPECT_EQ(row["case"], "custom");
    EXPECT_EQ(row["T"], 6);
    EXPECT_EQ(row["B"], 3);
    EXPECT_EQ(row["I"], 2);
    EXPECT_EQ(row["H"], 5);
    EXPECT_EQ(row["threads"], 1);
    EXPECT_EQ(row["kernel"], i < 2 ? best : "reference");
    EXPECT_EQ(row["detach"], i % 2 == 0 ? 0.0 : 0.5);
    for (const char* key :
         {"forward_ms", "backward_ms", "train_ms", "libtorch_train_ms", "reference_train_ms",
          "speedup_libtorch", "peak_fraction", "peak_gflops"}) {
      ASSERT_TRUE(row[key].is_number()) << key << " in " << row;
      EXPECT_GT(row[key].get<double>(), 0) << key;
    }
    EXPECT_NEAR(row["speedup_libtorch"].get<double>(),
                row["libtorch_train_ms"].get<double>() / row["train_ms"].get<double>(), 1e-6);
    for (const char* key : {"onednn_train_ms", "speedup_onednn"}) {
      ASSERT_TRUE(row.contains(key));
      EXPECT_TRUE(row[key].is_null() || row[key].get<double>() > 0) << key << " in " << row;
    }
    EXPECT_TRUE(row["cpu"].is_string());
    EXPECT_TRUE(row["commit"].is_string());
  }
}

TEST(Cli, BenchWithoutPeersLeavesThemEmpty) {
  const Result result =
      run("bench --shape 2,1,1,1 --detach 1 --repeats 1 --threads 1 --no-peers --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json row = json::parse(result.out);
  for (const char* key : {"libtorch_train_ms", "onednn_train_ms", "reference_train_ms",
                          "speedup_libtorch", "speedup_onednn"}) {
    EXPECT_TRUE(row.contains(key) && row[key].is_null()) << key << " in " << row;
  }
  EXPECT_GT(row["train_ms"].get<double>(), 0);
}

// Of a few numbers the float32 reference may have every one right by luck.
TEST(Cli, BenchFindsNoFaultInTinyShapes) {
  for (const char* shape : {"3,1,1,1", "1,1,1,1", "2,1,3,1", "1,2,1,2", "5,1,2,1", "2,2,1,3"}) {
    const Result result = run(std::string("bench --shape ") + shape +
                              " --detach 0,0.5,1 --repeats 1 --threads 1 --no-peers");
    EXPECT_EQ(result.exit_code, 0) << shape << ": " << result.err;
  }
}

TEST(Cli, BenchTableHasOneLinePerDetach) {
  const Result result =
      run("bench --shape 4,2,3,16 --detach 0,1 --repeats 1 --threads 1 --no-peers");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines(result.out), 4) << result.out;  // two of heading
  EXPECT_TRUE(contains(result.out, "backward")) << result.out;
}

}  // namespace
