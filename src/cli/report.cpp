// hdetach report FOLDER...: the runs in some folders as one HTML page, written to a file or served
// while they go on.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/report_page.h"
#include "cli/subcommands.h"
#include "formats/files.h"
#include "report/experiments.h"
#include "report/http_server.h"
#include "report/page.h"

namespace hdetach::cli {
namespace {

struct ReportOptions {
  std::vector<std::filesystem::path> folders;
  std::string out;  // empty means report.html in the first folder
  bool json = false;
  bool watch = false;
  int port = 0;
};

std::string command_line(const ReportOptions& options) {
  std::string text = "hdetach report";
  for (const auto& folder : options.folders) text += " " + folder.string();
  if (!options.out.empty()) text += " -o " + options.out;
  return text + (options.watch ? " --watch" : "");
}

bool is_standard_output(const std::filesystem::path& path) {
  struct stat named, output;
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
         named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

void write_report(const ReportOptions& options) {
  if (!options.json) need_page();
  const report::Experiments experiments = report::ExperimentReader(options.folders).read();
  need_runs(experiments, options.folders);
  print_notices(experiments.notices);
  const std::string data = report_data(experiments, command_line(options), false);
  if (options.json) {
    put(stdout, data);
    return;
  }
  const std::filesystem::path path =
      options.out.empty() ? options.folders[0] / "report.html" : std::filesystem::path(options.out);
  try {
    files::write(path, report::page(report::page_template(), data));
  } catch (const std::exception& problem) {
    throw std::runtime_error(fmt::format("{}; name another file by -o", problem.what()));
  }
  if (!is_standard_output(path)) print("page: {}\n", path.string());
}

// The data as it is now: made anew only where a file changed.
class LiveData {
 public:
  explicit LiveData(const ReportOptions& options) : options_(options), reader_(options.folders) {
    stamp_ = reader_.stamp();
    const report::Experiments experiments = reader_.read();
    need_runs(experiments, options.folders);
    print_notices(experiments.notices);
    make(experiments);
  }

  std::shared_ptr<const std::string> now() {
    const std::string stamp = reader_.stamp();
    if (stamp != stamp_) {
      make(reader_.read());
      stamp_ = stamp;
    }
    return data_;
  }

 private:
  void make(const report::Experiments& experiments) {
    data_ =
        std::make_shared<const std::string>(report_data(experiments, command_line(options_), true));
  }

  const ReportOptions& options_;
  report::ExperimentReader reader_;
  std::string stamp_;
  std::shared_ptr<const std::string> data_;
};

void serve_report(const ReportOptions& options) {
  need_page();
  LiveData data(options);
  report::HttpServer server(options.port);
  const auto* const signal = watch_signals();
  print("page: http://127.0.0.1:{}/ as the runs go on; Ctrl-C ends\n", server.port());
  flush_output();
  server.serve(signal, [&](const std::string& path) -> report::HttpAnswer {
    if (path == "/") {
      return {
          200, "text/html; charset=utf-8",
          std::make_shared<const std::string>(report::page(report::page_template(), *data.now()))};
    }
    if (path == "/data.json") return {200, "application/json", data.now()};
    return {};
  });
}

}  // namespace

void register_report(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "report", "Make one HTML page of runs: curves, tables, gradients, captions, settings");
  auto options = std::make_shared<ReportOptions>();
  command
      ->add_option("FOLDER", options->folders,
                   "Folders of runs, of sweeps, or of those, at most 6 levels down")
      ->required();
  CLI::Option* out =
      command->add_option("-o,--out", options->out,
                          "The page, replaced where it is there (default: FOLDER/report.html)");
  CLI::Option* json =
      command->add_flag("--json", options->json, "Print the data of the page as JSON, no page")
          ->excludes(out);
  CLI::Option* watch =
      command
          ->add_flag("--watch", options->watch,
                     "Serve the page to this machine, up to date while runs go on, until Ctrl-C")
          ->excludes(out)
          ->excludes(json);
  command->add_option("--port", options->port, "Port of --watch; 0 means any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str()
      ->needs(watch);
  command->callback(
      [options] { options->watch ? serve_report(*options) : write_report(*options); });
}

}  // namespace hdetach::cli
