// A folder of made runs, and Markdown that shows them.
#pragma once

#include <filesystem>
#include <string>

#include "formats/files.h"
#include "report/documents/filled_document.h"
#include "tests/program.h"
#include "tests/report_runs.h"

namespace hdetach::test {

// small/: two settings with two seeds, of which one run is not over, and a setting that waits.
class FilledRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_experiment("small", R"(task = "copy"
threshold = 0.9
seeds = [1, 2]
eval-delays = [200, 1000]
[[setting]]
name = "plain"
paper = "82 at best"
paper-eval = [64.85, 48]
[[setting]]
name = "detach-0.5"
detach = 0.5
[[setting]]
name = "later"
)");
    for (const char* run :
         {"plain/seed-1", "plain/seed-2", "detach-0.5/seed-1", "detach-0.5/seed-2"}) {
      files::make_folder(folder_ / "small" / run);
      files::write(folder_ / "small" / run / "config.toml", "task = \"copy\"\n");
    }
    const std::string finished = result_json("finished", "");
    write_run(folder_ / "small/plain/seed-1", {0.1, 0.2, 0.3}, finished);
    write_run(folder_ / "small/plain/seed-2", {0.2, 0.3, 0.5}, finished);
    write_run(folder_ / "small/detach-0.5/seed-1", {0.5, 0.9, 1.0}, finished);
    write_run(folder_ / "small/detach-0.5/seed-2", {0.4});
  }

  void write_experiment(const std::string& name, const std::string& file) {
    files::make_folder(folder_ / name);
    files::write(folder_ / name / (name + ".toml"), file);
  }

  // What the only block of a document in the folder holds.
  std::string block(const std::string& marker) {
    const std::string start = "<!-- hdetach " + marker + " -->\n", end = "<!-- end -->\n";
    const std::string text = fill(start + "old\n" + end).text;
    EXPECT_EQ(text.substr(0, start.size()), start);
    EXPECT_EQ(text.substr(text.size() - end.size()), end);
    return text.substr(start.size(), text.size() - start.size() - end.size());
  }

  std::string picture(const std::string& marker) {
    return fill("<!-- hdetach " + marker + " -->\n<!-- end -->\n").blocks.at(0).picture->svg;
  }

  report::FilledDocument fill(const std::string& text) {
    report::ResultFolders results;
    return report::filled(text, folder_ / "doc.md", results);
  }

  TemporaryFolder folder_;
};

}  // namespace hdetach::test
