// Work on a row of things, in threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace hdetach::tasks {

// Calls work(begin, end) for blocks of [0, count), each on the thread that is free next. What the
// first block that failed threw is thrown here, first in their order and not in time.
inline void side_by_side(size_t count, int threads,
                         const std::function<void(size_t begin, size_t end)>& work) {
  const size_t workers = std::min(static_cast<size_t>(std::max(threads, 1)), count + 1);
  const size_t block = std::max<size_t>(1, count / (8 * workers));
  struct Failure {
    size_t begin;
    std::exception_ptr what;
  };
  std::vector<Failure> failures(workers, {count, nullptr});
  std::atomic<size_t> next{0};
  const auto run = [&](size_t worker) {
    for (size_t begin; (begin = next.fetch_add(block)) < count;) {
      try {
        work(begin, std::min(begin + block, count));
      } catch (...) {
        failures[worker] = {begin, std::current_exception()};
        return;
      }
    }
  };
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < workers) others.emplace_back(run, others.size() + 1);
  } catch (const std::system_error&) {
    // The system gives no more threads; those there are do the work.
  }
  run(0);
  for (std::thread& other : others) other.join();
  const auto first =
      std::min_element(failures.begin(), failures.end(),
                       [](const Failure& a, const Failure& b) { return a.begin < b.begin; });
  if (first->what) std::rethrow_exception(first->what);
}

}  // namespace hdetach::tasks
