#pragma once

#include <csignal>

namespace hdetach::cli {

// From now on SIGINT and SIGTERM set the number that the result points to, instead of ending the
// process. Another one a second later or more ends it at once; sooner ones are the same event,
// since timeout(1) signals a process and then its whole group.
const volatile std::sig_atomic_t* watch_signals();

}  // namespace hdetach::cli
