// Each subcommand is one file with one function, which adds it to the program and runs it from its
// callback. A CLI::Error thrown there is a usage error (exit 2), any other exception a failure
// (exit 1).
#pragma once

namespace CLI {
class App;
}

namespace hdetach::cli {

void register_info(CLI::App& program);
void register_bench(CLI::App& program);

}  // namespace hdetach::cli
