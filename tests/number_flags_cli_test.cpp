// No flag takes NaN. The flags are those that the help of each command lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/program.h"

namespace {

using hdetach::TemporaryFolder;
using hdetach::program::contains;
using hdetach::program::Result;
using hdetach::program::run;

struct CommandWithNumbers {
  const char* name;
  const char* flag;  // one of its flags that are numbers, nullptr where it has none
};

void PrintTo(const CommandWithNumbers& command, std::ostream* out) { *out << command.name; }

// Without those that are only there to name others: train, data.
constexpr CommandWithNumbers kCommands[] = {
    {"train copy", "--lr"},      {"train mnist", "--clip"},  {"train caption", "--dropout"},
    {"train together", nullptr}, {"eval", "--sequences"},    {"caption", "--length-power"},
    {"sweep", "--jobs"},         {"report", "--port"},       {"fill", nullptr},
    {"score", nullptr},          {"xray", "--weight-scale"}, {"data mnist", nullptr},
    {"features", "--positions"}, {"bench", "--detach"},      {"info", nullptr},
};

// The names in the help's list of subcommands, or those of their own subcommands.
std::vector<std::string> commands_below(const std::string& command) {
  std::istringstream help(run(command + " --help").out);
  static const std::regex heading("subcommands:", std::regex::icase), entry("  (\\w+) .*");
  std::vector<std::string> names;
  bool listed = false;
  std::smatch found;
  for (std::string line; std::getline(help, line);) {
    if (!listed) {
      listed = std::regex_match(line, heading);
    } else if (std::regex_match(line, found, entry)) {
      const auto below = commands_below(command + found[1].str() + " ");
      names.insert(names.end(), below.begin(), below.end());
    }
  }
  if (!listed) names.push_back(command.substr(0, command.size() - 1));
  return names;
}

TEST(NumberFlags, OfEveryCommandAreTried) {
  std::vector<std::string> tried, listed = commands_below("");
  for (const CommandWithNumbers& command : kCommands) tried.push_back(command.name);
  std::sort(tried.begin(), tried.end());
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(tried, listed);
}

class NumberFlagsOf : public testing::TestWithParam<CommandWithNumbers> {
 protected:
  // Names the flag and the value in its first line. Where the value is taken, what the command
  // does is done in a folder of the test, and not for long.
  void expect_refused(const std::string& flag, const std::string& value) {
    const std::string arguments = std::string(GetParam().name) + " " + flag + " " + value;
    const Result result = run(arguments, "-C '" + folder_.path().string() + "' timeout 60");
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    const std::string message = result.err.substr(0, result.err.find('\n'));
    EXPECT_TRUE(contains(message, flag)) << arguments << ": " << message;
    EXPECT_TRUE(contains(message, "nan")) << arguments << ": " << message;
  }

  const TemporaryFolder folder_;
};

TEST_P(NumberFlagsOf, RefuseNan) {
  static const std::regex option(" +(?:-\\w, *)?(--[\\w-]+) (\\S.*?)(?:  .*)?"),
      number("\\b(?:INT|FLOAT)\\b");
  std::vector<std::string> flags;
  std::istringstream help(run(std::string(GetParam().name) + " --help").out);
  std::smatch found;
  for (std::string line; std::getline(help, line);) {
    if (!std::regex_match(line, found, option)) continue;
    const std::string flag = found[1], type = found[2];
    if (!std::regex_search(type, number)) continue;
    flags.push_back(flag);
    expect_refused(flag, "nan");
    if (contains(type, " ...")) expect_refused(flag, "1,nan");
  }
  if (GetParam().flag == nullptr) return;
  EXPECT_EQ(std::count(flags.begin(), flags.end(), GetParam().flag), 1) << GetParam().flag;
}

INSTANTIATE_TEST_SUITE_P(Cli, NumberFlagsOf, testing::ValuesIn(kCommands),
                         [](const testing::TestParamInfo<CommandWithNumbers>& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
