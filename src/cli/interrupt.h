#pragma once

#include <csignal>

namespace hdetach::cli {

// From now on SIGINT and SIGTERM set the number that the result points to, instead of ending the
// process. A second one of the same kind ends it at once.
const volatile std::sig_atomic_t* watch_signals();

}  // namespace hdetach::cli
