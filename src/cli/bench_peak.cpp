// The ceiling the bench measures against: chains of multiply-adds that never leave the registers,
// written with vector types so that one body serves every instruction set.
#include "cli/bench_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace hdetach::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Enough to cover two pipes of latency 5, and with two constants no more than 16 registers.
constexpr int kChains = 12;

// Leaves the sum of the chains in `sink`, which keeps the compiler from dropping them.
template <typename Vector>
[[gnu::always_inline]] inline void multiply_add_chains(int64_t rounds, float* sink) {
  // Volatile: a compiler that knew the numbers would fold a chain that stands still.
  volatile float factor_value = 0.99f, term_value = 0.01f;
  Vector chain[kChains], factor, term;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  for (int lane = 0; lane < kLanes; ++lane) {
    factor[lane] = factor_value;  // the chains settle at 1: no overflow, no denormals
    term[lane] = term_value;
    for (int i = 0; i < kChains; ++i) chain[i][lane] = static_cast<float>(i);
  }
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
  for (int i = 1; i < kChains; ++i) chain[0] += chain[i];
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += chain[0][lane];
  *sink = sum;
}

using Vector128 = float __attribute__((vector_size(16)));
void chains_128(int64_t rounds, float* sink) { multiply_add_chains<Vector128>(rounds, sink); }

#if defined(__x86_64__)
using Vector256 = float __attribute__((vector_size(32)));
using Vector512 = float __attribute__((vector_size(64)));
[[gnu::target("avx2,fma")]] void chains_256(int64_t rounds, float* sink) {
  multiply_add_chains<Vector256>(rounds, sink);
}
[[gnu::target("avx512f,fma")]] void chains_512(int64_t rounds, float* sink) {
  multiply_add_chains<Vector512>(rounds, sink);
}
#endif

struct Loop {
  void (*run)(int64_t rounds, float* sink);
  int lanes;
};

Loop widest_loop() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {chains_512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {chains_256, 8};
#endif
  return {chains_128, 4};
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Rounds that take one thread about 10 ms.
int64_t rounds_for_10_ms(const Loop& loop) {
  float sink;
  for (int64_t rounds = 100'000;; rounds *= 2) {
    const Clock::time_point start = Clock::now();
    loop.run(rounds, &sink);
    const double seconds = seconds_since(start);
    if (seconds > 0.002) return static_cast<int64_t>(rounds * 0.010 / seconds) + 1;
  }
}

// Seconds until the last of the threads, all released together, has done its rounds.
double timed_run(const Loop& loop, int threads, int64_t rounds) {
  std::atomic<int> waiting{0};
  std::atomic<bool> go{false};
  std::vector<float> sinks(threads);
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back([&, i] {
      ++waiting;
      while (!go) std::this_thread::yield();
      loop.run(rounds, &sinks[i]);
    });
  }
  while (waiting < threads - 1) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  go = true;
  loop.run(rounds, &sinks[0]);
  for (std::thread& other : others) other.join();
  return seconds_since(start);
}

}  // namespace

double fma_peak_gflops(int threads, int runs) {
  const Loop loop = widest_loop();
  static const int64_t rounds = rounds_for_10_ms(loop);
  const double gflop = 2e-9 * kChains * loop.lanes * static_cast<double>(rounds) * threads;
  double best = 0;
  for (int i = 0; i < runs; ++i) best = std::max(best, gflop / timed_run(loop, threads, rounds));
  return best;
}

}  // namespace hdetach::cli
