// What the demo shows: a live table, a plot for the terminal, and a page to keep. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Point {
  int64_t updates;
  double loss;       // mean training loss since the last point
  double accuracy;   // validation, the repeated symbols only, 0..1
  double grad_norm;  // largest since the last point, before clipping
};

struct Curve {
  double detach;  // 0 is the plain LSTM
  uint64_t seed;
  std::vector<Point> points;
};

// Every text ends with a newline.
std::string table(const std::vector<Curve>& curves);          // one line for each run
std::string progress_line(const std::vector<Curve>& curves);  // one line for all
std::string plot(const std::vector<Curve>& curves);           // accuracy against updates
std::string summary(const std::vector<Curve>& curves);        // one line for each setting

// Writes demo.html (self-contained) and demo.jsonl (one object for each point) into folder, each
// under a temporary name first. about: what was trained and how to repeat it, a line for each
// entry. Throws std::runtime_error with the file's name when it cannot.
void write_report(const std::string& folder, const std::vector<std::string>& about,
                  const std::vector<Curve>& curves);
