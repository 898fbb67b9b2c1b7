// The built program as its users run it.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/temporary_folder.h"

namespace hdetach::program {

struct Result {
  int exit_code;
  std::string out, err;
};

inline std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Runs `hdetach arguments` in a shell, with `before` in front of it: "NAME=value", "timeout 1".
inline Result run(const std::string& arguments, const std::string& before = "") {
  std::string err_file = testing::TempDir() + "hdetach_cli_XXXXXX";
  close(mkstemp(err_file.data()));
  const std::string command = "env -u HDETACH_KERNEL " + before + " '" HDETACH_PROGRAM "' " +
                              arguments + " 2>'" + err_file + "'";
  FILE* pipe = popen(command.c_str(), "r");
  Result result;
  char chunk[4096];
  for (size_t n; (n = fread(chunk, 1, sizeof(chunk), pipe)) > 0;) result.out.append(chunk, n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.err = content(err_file);
  remove(err_file.c_str());
  return result;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline int lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace hdetach::program
