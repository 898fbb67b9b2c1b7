// The one list of problems that drives the parity, gradient and bit tests.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

namespace hdetach::test {

enum class Scales {
  kNone,   // absent: ones
  kSteps,  // [T], zeros and ones: the paper's draw
  kRows,   // [T,B], zeros, ones and fractions mixed
  kDamp,   // [T], 0.7 throughout
  kZero,   // [T], zeros: detach 1
};
enum class Arrives { kBoth, kH, kC };  // the outputs a gradient comes into

struct Case {
  const char* name;
  int64_t steps, batch, input, hidden;
  Scales h_scale = Scales::kNone, c_scale = Scales::kNone;
  bool lengths = false;
  bool bias = true;
  Arrives arrives = Arrives::kBoth;
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

inline const std::vector<Case>& cases() {
  using S = Scales;
  static const std::vector<Case> list{
      {"one_of_everything", 1, 1, 1, 1},
      {"hidden_7_steps", 9, 5, 3, 7, S::kSteps},
      {"hidden_16", 12, 4, 8, 16, S::kNone, S::kNone, false, true, Arrives::kH},
      {"hidden_33_rows", 11, 6, 5, 33, S::kRows, S::kNone},
      {"hidden_64_both_paths", 10, 3, 17, 64, S::kRows, S::kRows},
      {"hidden_100_input_1", 40, 7, 1, 100, S::kSteps},
      {"hidden_128_batch_1", 30, 1, 10, 128, S::kDamp},
      {"hidden_160_batch_20", 16, 20, 6, 160, S::kSteps, S::kNone, true},
      {"one_step", 1, 9, 4, 20, S::kRows, S::kRows},
      {"wide_input", 6, 13, 70, 5, S::kNone, S::kSteps},
      {"no_bias", 8, 10, 3, 24, S::kSteps, S::kNone, false, false},
      {"lengths", 13, 11, 4, 19, S::kNone, S::kNone, true},
      {"lengths_rows", 13, 11, 4, 19, S::kRows, S::kRows, true, true, Arrives::kH},
      {"detach_1", 20, 8, 4, 32, S::kZero},
      {"cell_detach_1", 20, 8, 4, 32, S::kNone, S::kZero, false, true, Arrives::kC},
      {"copy_100", 120, 100, 10, 128, S::kSteps},
      // Few rows, many inputs: a GPU's products split the sum over a cluster of 2, 4 or 8 blocks.
      {"input_259_rows_150", 3, 50, 259, 33, S::kSteps},
      {"input_300_one_step", 1, 50, 300, 160, S::kRows, S::kRows},
      {"input_517", 1, 7, 517, 256},
      {"input_1000", 2, 3, 1000, 200, S::kRows, S::kNone, true},
  };
  return list;
}

// What a GPU's kernels get beside those: hidden sizes on both sides of the resident kernel's
// limits, and batches and inputs that fill no tile.
inline const std::vector<Case>& cuda_cases() {
  using S = Scales;
  static const std::vector<Case> list{
      {"hidden_65_input_16", 10, 5, 16, 65, S::kSteps},
      {"hidden_100_input_2", 12, 3, 2, 100, S::kSteps, S::kNone, true},
      {"hidden_128_batch_131", 10, 131, 17, 128, S::kRows, S::kNone, true},
      {"hidden_128_long", 300, 2, 1, 128, S::kSteps},
      {"hidden_160_batch_1", 9, 1, 1, 160, S::kSteps},
      {"hidden_160_batch_131", 6, 131, 2, 160, S::kRows, S::kNone, true},
      {"hidden_192_batch_100", 8, 100, 16, 192, S::kSteps},
      {"hidden_192_rows", 7, 5, 17, 192, S::kRows, S::kRows, true},
      {"hidden_200_batch_3", 7, 3, 17, 200, S::kRows, S::kRows},
      {"hidden_256_batch_5", 8, 5, 2, 256, S::kSteps, S::kSteps, true},
      {"hidden_256_batch_1", 5, 1, 16, 256, S::kNone, S::kRows},
      {"hidden_384_batch_131", 5, 131, 1, 384, S::kRows},
      {"hidden_512_batch_3", 6, 3, 16, 512, S::kSteps, S::kNone, true},
      {"hidden_600_no_bias", 4, 100, 17, 600, S::kRows, S::kRows, true, false},
  };
  return list;
}

}  // namespace hdetach::test
