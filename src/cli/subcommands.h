// Each subcommand is one file with one function, which adds it to the program and runs it from its
// callback. A CLI::Error thrown there is a usage error (exit 2), an ExitCode the end that it names,
// any other exception a failure (exit 1).
#pragma once

namespace CLI {
class App;
}

namespace hdetach::cli {

struct ExitCode {
  int code;  // 128 + the signal, after work was saved
};

void register_info(CLI::App& program);
void register_train(CLI::App& program);
void register_eval(CLI::App& program);
void register_caption(CLI::App& program);
void register_sweep(CLI::App& program);
void register_report(CLI::App& program);
void register_fill(CLI::App& program);
void register_score(CLI::App& program);
void register_xray(CLI::App& program);
void register_data(CLI::App& program);
void register_features(CLI::App& program);
void register_bench(CLI::App& program);

}  // namespace hdetach::cli
