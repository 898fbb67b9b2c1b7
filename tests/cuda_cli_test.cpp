// `hdetach bench --device cuda` and the GPU's part of `hdetach info`, with and without a GPU.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/cuda/device.h"
#include "tests/program.h"
#include "tests/usage_errors.h"

namespace {

using hdetach::cuda_present;
using hdetach::program::contains;
using hdetach::program::Result;
using hdetach::program::run;
using nlohmann::json;

TEST(CudaCli, HelpNamesTheDeviceAndItsCases) {
  const Result help = run("bench --help");
  for (const char* part : {"--device", "--replicas", "h160", "h1024-b128", "cudnn", "cell loop"}) {
    EXPECT_TRUE(contains(help.out, part)) << part << " is missing in\n" << help.out;
  }
}

TEST(CudaCli, UsageErrorsNameTheFlagAndTheValue) {
  hdetach::program::expect_usage_errors({
      {"bench --device tpu", "--device", "tpu"},
      {"bench --replicas 2", "--replicas", "--trainer"},
      {"bench --trainer --replicas 2", "--replicas", "2"},
      {"bench --trainer --replicas 0", "--replicas", "0"},
      {"bench --device cuda --kernel cpu-generic", "--kernel", "cpu-generic"},
  });
}

TEST(CudaCli, WithoutAGpuTheBenchSaysSo) {
  if (cuda_present()) GTEST_SKIP() << "there is a GPU";
  for (const char* arguments : {"bench --device cuda", "bench --trainer --device cuda"}) {
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(contains(result.err, "--device cuda: ")) << result.err;
  }
}

TEST(CudaCli, InfoTellsWhichSizesGetWhichKernel) {
  const json info = json::parse(run("info --json").out);
  for (const json& kernel : info["kernels"]) EXPECT_TRUE(kernel["device"].is_string()) << kernel;
  if (!cuda_present()) {
    EXPECT_FALSE(info.contains("cuda_kernels_by_size"));
    GTEST_SKIP() << "no CUDA device: the GPU's part of hdetach info is NOT tested here";
  }
  const std::string text = run("info").out;
  EXPECT_TRUE(contains(text, hdetach::cuda_device_name())) << text;
  const json& sizes = info["cuda_kernels_by_size"];
  ASSERT_GE(sizes.size(), 2u) << info;
  EXPECT_EQ(sizes.front()["kernel"], "cuda-resident");
  EXPECT_EQ(sizes.back()["kernel"], "cuda-steps");
  EXPECT_FALSE(sizes.back().contains("hidden_to"));
  for (const json& size : sizes) {
    EXPECT_TRUE(contains(text, size["kernel"].get<std::string>())) << text;
  }
}

TEST(CudaCli, BenchJsonHoldsEveryField) {
  if (!cuda_present()) GTEST_SKIP() << "no CUDA device: its bench is NOT tested here";
  const Result result =
      run("bench --device cuda --shape 6,3,2,20 --detach 0.5 --kernel cuda-resident,cuda-steps "
          "--repeats 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream stream(result.out);
  int rows = 0;
  for (std::string line; std::getline(stream, line); ++rows) {
    const json row = json::parse(line);
    EXPECT_EQ(row["device"], "cuda");
    EXPECT_EQ(row["gpu"], hdetach::cuda_device_name());
    EXPECT_EQ(row["kernel"], rows == 0 ? "cuda-resident" : "cuda-steps");
    for (const char* key : {"forward_ms", "backward_ms", "train_ms", "host_ms", "cudnn_train_ms",
                            "cudnn_ratio", "cell_loop_train_ms", "cell_loop_ratio"}) {
      ASSERT_TRUE(row[key].is_number()) << key << " in " << row;
      EXPECT_GT(row[key].get<double>(), 0) << key;
    }
    EXPECT_FALSE(row.contains("threads") || row.contains("peak_gflops")) << row;
  }
  EXPECT_EQ(rows, 2) << result.out;
}

TEST(CudaCli, TrainerBenchJsonHoldsEveryField) {
  if (!cuda_present()) GTEST_SKIP() << "no CUDA device: its trainer's bench is NOT tested here";
  const Result result =
      run("bench --trainer --device cuda copy100 --replicas 2 --detach 0.25 --repeats 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json row = json::parse(result.out);
  EXPECT_EQ(row["device"], "cuda");
  EXPECT_EQ(row["replicas"], 2);
  EXPECT_EQ(row["I"], 1);
  for (const char* key : {"update_ms", "epoch_seconds", "updates_per_second"}) {
    EXPECT_GT(row[key].get<double>(), 0) << key;
  }
}

}  // namespace
