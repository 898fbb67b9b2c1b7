// A line of progress: repainted in place on a terminal, printed every few seconds elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace hdetach::cli {

class LiveLine {
 public:
  enum class Elsewhere { kLines, kSilent };  // when the stream is not a terminal

  LiveLine(FILE* stream, Elsewhere elsewhere);
  ~LiveLine() { clear(); }

  bool due() const;                    // a new line would be shown, so it is worth making
  void show(const std::string& text);  // at most as often as due() says
  void clear();                        // before other output on the terminal

 private:
  FILE* stream_;
  bool terminal_, silent_;
  bool painted_ = false;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace hdetach::cli
