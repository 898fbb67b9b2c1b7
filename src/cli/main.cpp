#include <c10/util/Exception.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>

#include "cli/output.h"
#include "cli/subcommands.h"
#include "cli/version.h"

namespace {

constexpr int kFailure = 1;
constexpr int kUsageError = 2;

int fail(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  hdetach::cli::print(stderr, "hdetach: error: {}\n", message);
  return kFailure;
}

// Help and version, or a usage error.
int end_parsing(const CLI::App& program, const CLI::Error& error) {
  std::ostringstream out, err;
  const int code = program.exit(error, out, err);
  hdetach::cli::put(stdout, out.str());
  hdetach::cli::put(stderr, err.str());
  return code == 0 ? 0 : kUsageError;
}

int run(int argc, char** argv) {
  CLI::App program("An LSTM whose gradient can be steered per time step.", "hdetach");
  program.set_version_flag(
      "--version", fmt::format("hdetach {} ({})", hdetach::cli::version(), hdetach::cli::commit()));
  program.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("hdetach: {}\nhdetach --help and hdetach COMMAND --help list the flags.\n",
                       error.what());
  });
  program.require_subcommand(0, 1);  // the words behind it are its own: there is a size `caption`
  hdetach::cli::register_train(program);
  hdetach::cli::register_eval(program);
  hdetach::cli::register_caption(program);
  hdetach::cli::register_sweep(program);
  hdetach::cli::register_report(program);
  hdetach::cli::register_fill(program);
  hdetach::cli::register_score(program);
  hdetach::cli::register_xray(program);
  hdetach::cli::register_data(program);
  hdetach::cli::register_features(program);
  hdetach::cli::register_bench(program);
  hdetach::cli::register_info(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Error& error) {
    return end_parsing(program, error);
  } catch (const hdetach::cli::ExitCode& exit) {
    return exit.code;
  } catch (const c10::Error& error) {
    return fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  if (program.get_subcommands().empty()) {
    hdetach::cli::put(stderr, program.help());
    return kUsageError;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is lost output like any other
  hdetach::cli::open_standard_descriptors();
  const int code = run(argc, argv);
  const std::string lost = hdetach::cli::lost_output();
  if (lost.empty()) return code;
  fail(lost);
  return code == 0 ? kFailure : code;
}
