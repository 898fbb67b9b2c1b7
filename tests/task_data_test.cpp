// The data of the tasks, token by token, and the order in which it is drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "op/random_bits.h"
#include "tasks/copying.h"
#include "tasks/pixels.h"
#include "tasks/sequence_set.h"
#include "train/make_task.h"

namespace hdetach {
namespace {

using tasks::CopyingSet;
using tasks::Encoding;

std::vector<float> inputs(const tasks::SequenceSet& set, const std::vector<int64_t>& rows,
                          int64_t begin, int64_t end) {
  std::vector<float> x((end - begin) * rows.size() * set.inputs(), -1.0f);
  set.read_inputs(rows, begin, end, x.data());
  return x;
}

std::vector<uint8_t> targets(const tasks::SequenceSet& set, const std::vector<int64_t>& rows,
                             int64_t begin, int64_t end) {
  std::vector<uint8_t> y((end - begin) * rows.size(), 255);
  set.read_targets(rows, begin, end, y.data());
  return y;
}

// The paper's appendix: ten symbols, T-1 blanks, the delimiter, ten blanks; and T+10 blanks, then
// the ten symbols.
TEST(Copying, LayoutIsThePapersTokenByToken) {
  const int64_t T = 7;
  const CopyingSet set(10, T, Encoding::kScalar, 3, 5);
  ASSERT_EQ(set.steps(), T + 20);
  EXPECT_EQ(set.classes(), 9);
  EXPECT_EQ(set.target_steps(), T + 20);
  EXPECT_EQ(set.scored_steps(), 10);
  for (int64_t row = 0; row < 3; ++row) {
    const auto x = inputs(set, {row}, 0, T + 20);
    const auto y = targets(set, {row}, 0, T + 20);
    for (int64_t t = 0; t < T + 20; ++t) {
      if (t < 10) {
        EXPECT_GE(x[t], 1) << t;
        EXPECT_LE(x[t], 8) << t;
        EXPECT_EQ(y[T + 10 + t], x[t]) << t;
      } else {
        EXPECT_EQ(x[t], t == T + 9 ? 9 : 0) << t;
      }
      if (t < T + 10) EXPECT_EQ(y[t], 0) << t;
    }
  }
}

TEST(Copying, OneHotSaysTheSameAsScalar) {
  const CopyingSet scalar(4, 3, Encoding::kScalar, 6, 9), onehot(4, 3, Encoding::kOneHot, 6, 9);
  ASSERT_EQ(onehot.inputs(), 10);
  const std::vector<int64_t> rows = {5, 0, 0, 2};
  const auto tokens = inputs(scalar, rows, 0, scalar.steps());
  const auto x = inputs(onehot, rows, 0, onehot.steps());
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int k = 0; k < 10; ++k) EXPECT_EQ(x[i * 10 + k], k == tokens[i] ? 1 : 0) << i;
  }
}

TEST(Copying, AStretchIsAPartOfTheWhole) {
  const CopyingSet set(5, 11, Encoding::kOneHot, 4, 1);
  const std::vector<int64_t> rows = {3, 1};
  const auto x = inputs(set, rows, 0, set.steps());
  const auto y = targets(set, rows, 0, set.steps());
  for (int64_t begin = 0; begin < set.steps(); ++begin) {
    const int64_t end = std::min(begin + 4, set.steps());
    const auto part = inputs(set, rows, begin, end);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), x.begin() + begin * 2 * 10)) << begin;
    const auto labels = targets(set, rows, begin, end);
    EXPECT_TRUE(std::equal(labels.begin(), labels.end(), y.begin() + begin * 2)) << begin;
  }
}

// Pinned: a change here changes every run of every user.
TEST(Copying, SequencesFollowFromTheSeedOnAnyMachine) {
  const CopyingSet set(10, 1, Encoding::kScalar, 2, 1);
  const auto first = inputs(set, {0}, 0, 10), second = inputs(set, {1}, 0, 10);
  EXPECT_EQ(first, (std::vector<float>{1, 8, 7, 3, 6, 2, 1, 7, 3, 1}));
  EXPECT_EQ(second, (std::vector<float>{7, 4, 5, 1, 7, 3, 7, 2, 5, 7}));
}

TEST(Copying, SymbolsAreUniform) {
  const int64_t size = 20000;
  const CopyingSet set(10, 1, Encoding::kScalar, size, 3);
  std::vector<int64_t> rows(size);
  std::iota(rows.begin(), rows.end(), 0);
  const auto x = inputs(set, rows, 0, 10);
  for (int64_t place = 0; place < 10; ++place) {
    std::vector<double> counts(9);
    for (int64_t i = 0; i < size; ++i) counts[static_cast<int>(x[place * size + i])] += 1;
    double chi2 = 0;
    const double expected = size / 8.0;
    for (int k = 1; k <= 8; ++k) chi2 += (counts[k] - expected) * (counts[k] - expected) / expected;
    EXPECT_LT(chi2, 30) << place;  // seven degrees of freedom: 30 has probability 1e-4
    EXPECT_EQ(counts[0], 0);
  }
}

TEST(Copying, SetsOfARunDiffer) {
  train::Config config = train::default_config("copy");
  config.train_size = config.valid_size = 50;
  const auto task = train::make_task(config);
  const auto transfer = train::transfer_set(config, config.delay, 50);
  const auto other = train::transfer_set(config, 200, 50);
  std::vector<int64_t> rows(50);
  std::iota(rows.begin(), rows.end(), 0);
  std::set<std::vector<float>> all;
  for (const auto* set : {task.train.get(), task.valid.get(), transfer.get(), other.get()}) {
    all.insert(inputs(*set, rows, 0, 10));
  }
  EXPECT_EQ(all.size(), 4u);
}

TEST(Sampler, DrawsWithReplacementAsAFunctionOfTheUpdate) {
  tasks::Sampler sampler(tasks::Sampling::kWithReplacement, 1000, 7);
  std::vector<int64_t> third(100), again(100), fourth(100);
  sampler.minibatch(3, third);
  sampler.minibatch(4, fourth);
  sampler.minibatch(3, again);
  EXPECT_EQ(third, again);
  EXPECT_NE(third, fourth);
  std::set<int64_t> seen;
  std::vector<int64_t> rows(100);
  for (int64_t update = 0; update < 10; ++update) {
    sampler.minibatch(update, rows);
    for (const int64_t row : rows) {
      ASSERT_GE(row, 0);
      ASSERT_LT(row, 1000);
      seen.insert(row);
    }
  }
  // 1000 draws of 1000 with replacement leave 1/e unseen; without, none.
  EXPECT_NEAR(seen.size(), 632, 40);
}

TEST(Sampler, ShuffledPassesShowEverythingOnceInANewOrder) {
  tasks::Sampler sampler(tasks::Sampling::kShuffledPasses, 30, 7);
  std::vector<std::vector<int64_t>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<int64_t> order;
    for (int i = 0; i < 3; ++i) {
      std::vector<int64_t> rows(10);
      sampler.minibatch(pass * 3 + i, rows);
      order.insert(order.end(), rows.begin(), rows.end());
    }
    passes.push_back(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 30; ++i) EXPECT_EQ(order[i], i);
  }
  EXPECT_NE(passes[0], passes[1]);
  EXPECT_NE(passes[1], passes[2]);
  std::vector<int64_t> across(7), again(7);  // a minibatch that spans two passes
  sampler.minibatch(4, across);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(across[i], passes[0][28 + i]);
  for (int i = 2; i < 7; ++i) EXPECT_EQ(across[i], passes[1][i - 2]);
}

train::Config sample_config() {
  train::Config config = train::default_config("mnist");
  config.data = HDETACH_TEST_DATA "/mnist-sample";
  config.train_size = 150;
  config.valid_size = 50;
  return config;
}

TEST(Mnist, SplitsTheTrainingFileAndScalesPixels) {
  const auto task = train::make_task(sample_config());
  EXPECT_EQ(task.train->size(), 150);
  EXPECT_EQ(task.valid->size(), 50);
  EXPECT_EQ(task.test->size(), 50);
  EXPECT_EQ(task.train->steps(), 784);
  EXPECT_EQ(task.train->target_steps(), 1);
  const MnistFiles files = read_mnist(sample_config().data);
  const auto x = inputs(*task.valid, {0}, 0, 784);  // image 150 of the file
  for (int t = 0; t < 784; ++t) EXPECT_EQ(x[t], files.train.images[150 * 784 + t] / 255.0f);
  EXPECT_EQ(targets(*task.valid, {0, 49}, 783, 784),
            (std::vector<uint8_t>{files.train.labels[150], files.train.labels[199]}));
}

TEST(Mnist, ThePermutationIsFixedByItsOwnSeed) {
  train::Config config = sample_config();
  const auto plain = inputs(*train::make_task(config).train, {0}, 0, 784);
  config.permute = true;
  const auto permuted = inputs(*train::make_task(config).train, {0}, 0, 784);
  config.seed = 99;
  EXPECT_EQ(inputs(*train::make_task(config).train, {0}, 0, 784), permuted);
  config.permutation_seed = 2;
  const auto other = inputs(*train::make_task(config).train, {0}, 0, 784);
  EXPECT_NE(plain, permuted);
  EXPECT_NE(other, permuted);
  auto sorted_plain = plain, sorted_permuted = permuted;
  std::sort(sorted_plain.begin(), sorted_plain.end());
  std::sort(sorted_permuted.begin(), sorted_permuted.end());
  EXPECT_EQ(sorted_plain, sorted_permuted);
}

TEST(Mnist, MoreImagesThanThereAreIsAnError) {
  train::Config config = sample_config();
  config.valid_size = 51;
  try {
    train::make_task(config);
    FAIL() << "201 of 200 images were accepted";
  } catch (const train::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("train-size is 150 and valid-size 51"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hdetach
