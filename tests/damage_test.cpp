// Damaged run folders: each is refused with the name of a file, and left as it is, or recovers to
// the bits of the run that nobody damaged. None is trained on silently.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/files.h"
#include "mutate.h"
#include "op/random_bits.h"
#include "program.h"
#include "run_files.h"
#include "stop_after.h"
#include "train/config.h"
#include "train/run.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;

struct DamagedRun {
  const char* name;
  train::Config config;
  std::vector<int64_t> stops;  // updates after which the run was stopped; 0: it is over
};

DamagedRun damaged_copy() {
  train::Config config = train::default_config("copy");
  config.delay = 6;
  config.symbols = 2;
  config.hidden = 8;
  config.batch = 8;
  config.train_size = 100;
  config.valid_size = 20;
  config.epochs = 4;
  config.updates_per_epoch = 5;
  config.xray_every = 2;
  return {"copy", config, {3, 5, 12, 0}};
}

DamagedRun damaged_mnist() {
  train::Config config = train::default_config("mnist");
  config.data = HDETACH_TEST_DATA "/mnist-sample";
  config.train_size = 40;
  config.valid_size = 20;
  config.hidden = 4;
  config.batch = 10;
  config.epochs = 3;
  config.updates_per_epoch = 3;
  return {"mnist", config, {2, 7, 0}};
}

DamagedRun damaged_caption() {
  train::Config config = train::default_config("caption");
  config.data = "generated";
  config.wordnet = "/nonexistent";
  config.train_size = 40;
  config.valid_size = 10;
  config.hidden = 8;
  config.embedding = 8;
  config.batch = 4;
  config.captions = 2;
  config.beam = 1;
  config.epochs = 3;
  config.updates_per_epoch = 4;
  return {"caption", config, {3, 9, 0}};
}

void PrintTo(const DamagedRun& kind, std::ostream* out) { *out << kind.name; }

std::map<std::string, std::string> files_of(const fs::path& run) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::directory_iterator(run)) {
    out[entry.path().filename()] = files::read(entry.path());
  }
  return out;
}

class Damage : public testing::TestWithParam<DamagedRun> {
 protected:
  void resume(const fs::path& run, int64_t stop_after = 0) {
    train::run_until(stop_after, GetParam().config, run, /*resume=*/true);
  }
  uint64_t below(uint64_t end) { return random_bits(1, draws_++) % end; }

  // What was done, in words.
  std::string damage(const fs::path& file) {
    const std::string bytes = files::read(file), name = file.filename();
    const size_t at = below(bytes.size() + 1);
    switch (below(6)) {
      case 0:
        fs::remove(file);
        return name + " removed";
      case 1:
        files::write(file, bytes.substr(0, at));
        return fmt::format("{} cut at {}", name, at);
      case 2:
        files::write(file, mutate_(bytes));
        return name + " mutated";
      case 3: {  // as a disk that lost a block
        std::string zeros = bytes;
        for (size_t i = at; i < bytes.size() && i < at + 512; ++i) zeros[i] = 0;
        files::write(file, zeros);
        return fmt::format("{} zero from {}", name, at);
      }
      case 4:  // by a copy of the wrong folder
        fs::copy_file(root_ / "other" / file.filename(), file,
                      fs::copy_options::overwrite_existing);
        return name + " of another run";
      default: {
        std::string flipped = bytes;
        if (at < bytes.size()) flipped[at] ^= static_cast<char>(1 << below(8));
        files::write(file, flipped);
        return fmt::format("{} flipped at {}", name, at);
      }
    }
  }

  const TemporaryFolder root_;
  Mutator mutate_;
  uint64_t draws_ = 0;
};

TEST_P(Damage, IsRefusedByNameOrRecovered) {
  const char* wanted = std::getenv("HDETACH_DAMAGES");  // ./run test --full asks for more
  const int folders = wanted ? std::atoi(wanted) : 30;
  ASSERT_GT(folders, 0);
  resume(root_ / "whole");
  train::Config other = GetParam().config;
  other.seed += 1;
  train::run_until(0, other, root_ / "other", /*resume=*/true);
  int refused = 0, recovered = 0;
  for (const int64_t stop : GetParam().stops) {
    resume(root_ / std::to_string(stop), stop);
  }
  for (int i = 0; i < folders; ++i) {
    const auto& stops = GetParam().stops;
    const fs::path run = root_ / "damaged";
    fs::remove_all(run);
    fs::copy(root_ / std::to_string(stops[i % stops.size()]), run);
    std::vector<fs::path> all;
    for (const auto& [name, bytes] : files_of(run)) all.push_back(run / name);
    SCOPED_TRACE(fmt::format("{} stopped after {}: {}", GetParam().name, stops[i % stops.size()],
                             damage(all[i / stops.size() % all.size()])));
    const auto before = files_of(run);
    std::string error;
    try {
      resume(run);
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    if (error.empty()) {
      expect_equal_runs(root_ / "whole", run);
      ++recovered;
    } else {
      EXPECT_NE(error.find(run.string()), std::string::npos) << error;
      for (const auto& [name, bytes] : before) {
        EXPECT_TRUE(name == "lock" || files::read(run / name) == bytes) << name << ": " << error;
      }
      ++refused;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(recovered, 0);
  fmt::print("{} damaged runs: {} refused by name, {} recovered\n", GetParam().name, refused,
             recovered);
}

INSTANTIATE_TEST_SUITE_P(Runs, Damage,
                         testing::Values(damaged_copy(), damaged_mnist(), damaged_caption()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hdetach
