// The copying task: symbols are shown, then blanks, then a delimiter, after which the symbols must
// be repeated in order.
//
//   step     0 .. S-1   S .. S+T-2   S+T-1       S+T .. 2S+T-1
//   input    symbols    blank        delimiter   blank
//   target   blank      blank        blank       symbols
//
// with S symbols (the paper: 10) and delay T. Tokens: 0 blank, 1 to 8 symbols, 9 delimiter.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/sequence_set.h"

namespace hdetach::tasks {

enum class Encoding { kScalar, kOneHot };  // the raw token as one number, or ten inputs

class CopyingSet : public SequenceSet {
 public:
  static constexpr int64_t kTokens = 10, kClasses = 9;
  static constexpr int64_t kMostSymbols = 20;  // three bits each of one 64-bit draw

  // Sequence i is a function of the seed and i alone.
  CopyingSet(int64_t symbols, int64_t delay, Encoding encoding, int64_t size, uint64_t seed);

  int64_t size() const override { return static_cast<int64_t>(draws_.size()); }
  int64_t steps() const override { return delay_ + 2 * symbols_; }
  int64_t inputs() const override { return encoding_ == Encoding::kOneHot ? kTokens : 1; }
  int64_t classes() const override { return kClasses; }
  int64_t target_steps() const override { return steps(); }
  int64_t scored_steps() const override { return symbols_; }
  void read_codes(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                  uint8_t* codes) const override;
  const std::vector<float>& table() const override { return table_; }
  void read_targets(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                    uint8_t* target) const override;

 private:
  uint8_t symbol(int64_t row, int64_t i) const { return 1 + ((draws_[row] >> (3 * i)) & 7); }

  int64_t symbols_, delay_;
  Encoding encoding_;
  std::vector<uint64_t> draws_;  // three bits a symbol
  std::vector<float> table_;     // [tokens, inputs]
};

}  // namespace hdetach::tasks
