// Where things stand in memory: blocks of kLanes units, the workspace, and who owns which rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel.h"

namespace {

using hdetach::LstmShape;

constexpr int kBlock = 4 * kLanes;  // the four gates of kLanes units, side by side

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t block_count(int64_t units) { return ceil_div(units, kLanes); }
inline int block_lanes(int64_t units, int64_t block) {
  return static_cast<int>(least(kLanes, units - block * kLanes));
}

// Hands out aligned pieces of the workspace; on a null base it only counts.
struct Arena {
  char* base;
  size_t used = 0;

  template <typename T>
  T* take(int64_t count) {
    T* piece = base == nullptr ? nullptr : reinterpret_cast<T*>(base + used);
    used += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
};

struct Range {
  int64_t begin, end;
};

// Part `index` of `parts` nearly equal parts of [0, total).
inline Range part(int64_t total, int64_t parts, int64_t index) {
  return {total * index / parts, total * (index + 1) / parts};
}

// The rows a task owns for the whole sequence: contiguous, with nearly equal numbers of steps.
inline Range owned_rows(const LstmShape& shape, const int64_t* lengths, int64_t tasks,
                        int64_t task) {
  if (lengths == nullptr) return part(shape.batch, tasks, task);
  int64_t total = 0;
  for (int64_t b = 0; b < shape.batch; ++b) total += lengths[b];
  const Range want = part(total, tasks, task);
  Range rows{shape.batch, shape.batch};
  int64_t sum = 0;
  for (int64_t b = 0; b < shape.batch; ++b) {
    if (sum >= want.begin && sum < want.end) {
      if (rows.begin == shape.batch) rows.begin = b;
      rows.end = b + 1;
    }
    sum += lengths[b];
  }
  if (rows.begin == shape.batch) rows.end = shape.batch;
  return rows;
}

// Calls body(first, count) for tiles of at most `limit` covering [begin, end), as even as can be.
template <typename Body>
inline void for_tiles(Range range, int64_t limit, const Body& body) {
  const int64_t total = range.end - range.begin;
  const int64_t tiles = ceil_div(total, limit);
  for (int64_t i = 0; i < tiles; ++i) {
    const Range tile = part(total, tiles, i);
    body(range.begin + tile.begin, tile.end - tile.begin);
  }
}

}  // namespace
