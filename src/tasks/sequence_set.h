// What the trainer asks of a task: sequences of one length, read a stretch of steps at a time, so
// that a set of long ones never stands in memory as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hdetach::tasks {

class SequenceSet {
 public:
  virtual ~SequenceSet() = default;

  virtual int64_t size() const = 0;          // sequences
  virtual int64_t steps() const = 0;         // of each
  virtual int64_t inputs() const = 0;        // numbers a step
  virtual int64_t classes() const = 0;       // of the targets
  virtual int64_t target_steps() const = 0;  // the last so many steps have a target, and a loss
  virtual int64_t scored_steps() const = 0;  // the last so many count for the accuracy

  // A step's input is one of at most 256 vectors: the code of each step, and the vectors.
  virtual void read_codes(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                          uint8_t* codes) const = 0;    // [end - begin, rows]
  virtual const std::vector<float>& table() const = 0;  // [codes, inputs]

  // Steps [begin, end) of the sequences in `rows`.
  void read_inputs(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                   float* x) const;  // [end - begin, rows, inputs]
  virtual void read_targets(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                            uint8_t* target) const = 0;  // [end - begin, rows]
};

enum class Sampling { kWithReplacement, kShuffledPasses };

struct Task {
  std::shared_ptr<const SequenceSet> train, valid;
  std::shared_ptr<const SequenceSet> test;  // null when the task has none
  Sampling sampling;
  std::string checksum = {};  // of the files it was read from; empty when it was made from a seed
};

// The order of shuffled pass number `pass` through a set of so many sequences.
std::vector<int64_t> pass_order(int64_t size, uint64_t seed, uint64_t pass);

// The training sequences of minibatch number `update` (from 0), a function of its arguments alone.
// Shuffled passes go through the whole set in a new order each time before any repeats.
class Sampler {
 public:
  Sampler(Sampling sampling, int64_t size, uint64_t seed);
  void minibatch(int64_t update, std::vector<int64_t>& rows);

 private:
  Sampling sampling_;
  uint64_t size_, seed_;
  uint64_t pass_;               // whose order is in order_
  std::vector<int64_t> order_;  // of a shuffled pass
};

// The numbers 0 .. size-1 in an order that depends on the seed alone.
std::vector<int64_t> shuffled(int64_t size, uint64_t seed);

}  // namespace hdetach::tasks
