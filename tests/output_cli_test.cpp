// Standard output that cannot be written: every command fails and says so, and what it was to save
// is saved all the same.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files.h"
#include "report/page.h"
#include "tests/filled_runs.h"
#include "tests/program.h"
#include "tests/report_runs.h"
#include "tests/run_files.h"
#ifdef HDETACH_WITH_JPEG
#include "tests/jpeg_images.h"
#include "tests/resnet_arrays.h"
#endif

namespace {

namespace files = hdetach::files;
namespace fs = std::filesystem;
using hdetach::TemporaryFolder;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::Result;
using hdetach::program::run;

bool has_full_device() { return fs::is_character_file("/dev/full"); }

// One line on stderr, whatever else the command does. The limit is for a command that does not end.
void expect_lost(const std::string& arguments, const std::string& before = "timeout 120") {
  const Result result = run(arguments + " >/dev/full", before);
  EXPECT_EQ(result.exit_code, 1) << arguments << "\n" << result.err;
  EXPECT_EQ(result.err,
            "hdetach: error: cannot write to standard output: No space left on device\n")
      << arguments;
}

class LostOutput : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_full_device()) GTEST_SKIP() << "no /dev/full";
  }
  std::string place(const std::string& name) const { return "'" + (root_ / name).string() + "'"; }

  const TemporaryFolder root_;
};

const std::string kTinyTraining =
    "train copy --delay 6 --symbols 2 --hidden 16 --batch 8 --train-size 200 --valid-size 50 "
    "--updates-per-epoch 10 --epochs 2 --threads 1 --out ";

TEST_F(LostOutput, OfHelpAndVersion) {
  for (const char* arguments : {"--help", "--version", "train copy --help", "bench --help"}) {
    expect_lost(arguments);
  }
}

TEST_F(LostOutput, OfInfoBenchAndXray) {
  const std::string bench = "bench --shape 3,2,1,4 --detach 0.5 --repeats 1 --threads 1 --no-peers",
                    xray = "xray --random --hidden 4 --steps 5 --weight-scale 1 --detach 0.5";
  for (const std::string& command : {std::string("info"), bench, xray}) {
    expect_lost(command);
    expect_lost(command + " --json");
  }
}

TEST_F(LostOutput, OfTrainingAndTheRunIsSaved) {
  expect_lost(kTinyTraining + place("lost"));
  const Result quiet = run(kTinyTraining + place("quiet") + " --quiet >/dev/full");
  EXPECT_EQ(quiet.exit_code, 0) << "nothing was lost: " << quiet.err;
  EXPECT_TRUE(fs::exists(root_ / "lost/result.json"));
  expect_equal_runs(root_ / "quiet", root_ / "lost");
  const Result resumed = run(kTinyTraining + place("lost") + " --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;

  for (const std::string command :
       {"eval " + place("lost") + " --delay 6 --sequences 20", "xray " + place("lost")}) {
    expect_lost(command);
    expect_lost(command + " --json");
  }
}

// As `| head -1` does: what it tells is lost, not the work.
TEST(BrokenPipe, DoesNotEndTraining) {
  const TemporaryFolder root;
  const auto training = [&](const std::string& name) {
    return kTinyTraining + "'" + (root / name).string() + "'";
  };
  ASSERT_EQ(run(training("whole")).exit_code, 0);
  const std::string told = (root / "told").string();
  run(training("piped") + " 2>'" + told + "' | sh -c 'exec <&-; sleep 0.1'");
  EXPECT_EQ(content(told), "hdetach: error: cannot write to standard output: Broken pipe\n");
  EXPECT_TRUE(fs::exists(root / "piped/result.json"));
  expect_equal_runs(root / "whole", root / "piped");
}

// The next files that are opened would get the numbers of those that are closed.
TEST(ClosedOutput, IsWrittenIntoNoOtherFile) {
  const TemporaryFolder root;
  const auto out = [&](const std::string& name) { return "'" + (root / name).string() + "'"; };
  ASSERT_EQ(run(kTinyTraining + out("open")).exit_code, 0);
  const Result closed = run(kTinyTraining + out("closed") + " >&-");
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_EQ(closed.err, "hdetach: error: cannot write to standard output: Bad file descriptor\n");
  const Result all = run(kTinyTraining + out("all"), "sh -c 'exec \"$@\" <&- >&- 2>&-' sh");
  EXPECT_EQ(all.exit_code, 1);
  EXPECT_EQ(all.out + all.err, "");
  for (const char* name : {"closed", "all"}) {
    EXPECT_EQ(content(root / name / "lock"), "") << name;
    expect_equal_runs(root / "open", root / name);
    const Result resumed = run(kTinyTraining + out(name) + " --resume");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  }
}

TEST_F(LostOutput, OfASweepAndItsRunsAreSaved) {
  files::write(root_ / "tiny.toml",
               "task = \"copy\"\nseeds = [1, 2]\n[base]\nsymbols = 2\ndelay = 4\nhidden = 4\n"
               "batch = 2\ntrain-size = 20\nvalid-size = 10\nupdates-per-epoch = 3\nepochs = 1\n"
               "[[setting]]\nname = \"plain\"\n");
  const std::string command = "sweep " + place("tiny.toml") + " --out " + place("out");
  expect_lost(command + " --dry-run");
  expect_lost(command);
  for (const char* run : {"out/tiny/plain/seed-1", "out/tiny/plain/seed-2"}) {
    EXPECT_TRUE(fs::exists(root_ / run / "result.json")) << run;
  }
  expect_lost(command + " --quiet");
  expect_lost(command + " --quiet --json");
  const Result again = run(command);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(LostOutput, OfScores) {
  files::write(root_ / "references.json",
               R"({"annotations": [{"image_id": 8, "id": 3, "caption": "Two cats"}]})");
  files::write(root_ / "candidates.json", R"([{"image_id": 8, "caption": "two cats"}])");
  const std::string command = "score --no-meteor --references " + place("references.json") +
                              " --candidates " + place("candidates.json");
  expect_lost(command);
  expect_lost(command + " --json");
  expect_lost(command + " --per-image");
}

TEST_F(LostOutput, OfCaptions) {
  expect_lost(
      "train caption --data generated --train-size 40 --valid-size 10 --hidden 8 --embedding 8 "
      "--rare-words 0 --epochs 1 --updates-per-epoch 3 --wordnet none --out " +
      place("run"));
  expect_lost("caption " + place("run") + " --split val");
  expect_lost("caption " + place("run") + " --split val --json --references " + place("said"));
  EXPECT_TRUE(nlohmann::json::accept(content(root_ / "said")));
}

// The sums are right where md5sum says so: MNIST itself need not be here.
TEST_F(LostOutput, OfData) {
  const std::vector<std::vector<std::string>> sums = {
      {"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
      {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
      {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
      {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"}};
  std::string script = "#!/bin/sh\ncase $1 in\n";
  fs::create_directory(root_ / "mnist");
  for (const auto& sum : sums) {
    files::write(root_ / "mnist" / sum[0], "");
    script += sum[0] + ") echo '" + sum[1] + "  '$1;;\n";
  }
  fs::create_directory(root_ / "bin");
  files::write(root_ / "bin/md5sum", script + "esac\n");
  fs::permissions(root_ / "bin/md5sum", fs::perms::owner_all);
  const std::string path = "PATH=" + place("bin") + ":\"$PATH\"";
  const std::string command = "data mnist --out " + place("mnist");
  ASSERT_EQ(run(command, path).exit_code, 0);
  expect_lost(command, path);
}

TEST_F(LostOutput, OfReports) {
  hdetach::test::write_copy_run(root_ / "small/plain/seed-1");
  expect_lost("report " + place("small") + " --json");
  const std::string reason = hdetach::report::no_page_reason();
  if (!reason.empty()) GTEST_SKIP() << "no page: " << reason;
  expect_lost("report " + place("small"));
  EXPECT_TRUE(contains(content(root_ / "small/report.html"), "</html>"));
  expect_lost("report " + place("small") + " --watch");  // nobody would learn its port
}

class LostFilling : public hdetach::test::FilledRuns {};

TEST_F(LostFilling, FillsTheDocument) {
  if (!has_full_device()) GTEST_SKIP() << "no /dev/full";
  const std::string document = (folder_ / "document.md").string();
  files::write(document, "<!-- hdetach settings small -->\n<!-- end -->\n");
  expect_lost("fill '" + document + "'");
  EXPECT_TRUE(contains(content(document), "| plain | 82 at best |")) << content(document);
  expect_lost("fill '" + document + "'");  // up to date
}

#ifdef HDETACH_WITH_JPEG
TEST_F(LostOutput, OfFeatures) {
  fs::create_directory(root_ / "images");
  files::write(root_ / "images/a.jpg",
               hdetach::encode_jpeg(std::vector<uint8_t>(3 * 8 * 8, 100), 8, 8));
  files::write(root_ / "dataset.json",
               R"({"images": [{"cocoid": 1, "split": "train", "filepath": "", "filename": "a.jpg",
                   "sentences": [{"raw": "Grey.", "tokens": ["grey"]}]}]})");
  files::write(root_ / "resnet50.safetensors", hdetach::ResNetArrays(7).file());
  const std::string command = "features --captions '" + root_.path().string() + "' --images " +
                              place("images") + " --weights " + place("resnet50.safetensors") +
                              " --out " + place("features");
  expect_lost(command);
  EXPECT_TRUE(fs::exists(root_ / "features/train.safetensors"));
  const Result again = run(command);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(contains(again.out, "1 images, complete already")) << again.out;
}
#endif

}  // namespace
