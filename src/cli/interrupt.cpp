#include "cli/interrupt.h"

#include <time.h>

#include <initializer_list>

namespace hdetach::cli {
namespace {

volatile std::sig_atomic_t received = 0;
volatile double received_at = 0;

double seconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void on_signal(int number) {
  if (received == 0) {
    received_at = seconds();
    received = number;
  } else if (seconds() - received_at > 1) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // takes effect when this handler returns
  }
}

}  // namespace

const volatile std::sig_atomic_t* watch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  return &received;
}

}  // namespace hdetach::cli
