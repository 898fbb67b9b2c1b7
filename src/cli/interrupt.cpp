#include "cli/interrupt.h"

#include <initializer_list>

namespace hdetach::cli {
namespace {

volatile std::sig_atomic_t received = 0;

}  // namespace

const volatile std::sig_atomic_t* watch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { received = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
  return &received;
}

}  // namespace hdetach::cli
