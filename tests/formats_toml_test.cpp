// TOML: what is read, what is refused and in which words, and what is written.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "formats/toml.h"
#include "tests/mutate.h"

namespace {

namespace toml = hdetach::toml;

template <class T>
const T& get(const toml::Table& table, const char* key) {
  return std::get<T>(toml::find(table, key)->data);
}

std::string toml_message(const std::string& text) {
  try {
    toml::parse(text, "x.toml");
  } catch (const toml::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Toml, ReadsScalars) {
  const toml::Table table = toml::parse(
      "yes = true\nno=false\t# behind a value\nint = -1_000\nleast = -9223372036854775808\n"
      "float = 6.5e-1\nwhole = 1E3\nminus = -0.0\nsmall = 5e-324\n",
      "x.toml");
  EXPECT_EQ(table.size(), 8u);
  EXPECT_TRUE(get<bool>(table, "yes"));
  EXPECT_FALSE(get<bool>(table, "no"));
  EXPECT_EQ(get<int64_t>(table, "int"), -1000);
  EXPECT_EQ(get<int64_t>(table, "least"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(get<double>(table, "float"), 0.65);
  EXPECT_EQ(get<double>(table, "whole"), 1000.0);
  EXPECT_TRUE(std::signbit(get<double>(table, "minus")));
  EXPECT_EQ(get<double>(table, "small"), std::numeric_limits<double>::denorm_min());
}

TEST(Toml, ReadsInfinityAndNan) {
  const toml::Table table = toml::parse("a = inf\nb = -inf\nc = nan\nd = -nan\n", "x.toml");
  EXPECT_EQ(get<double>(table, "a"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(get<double>(table, "b"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(get<double>(table, "c")));
  EXPECT_TRUE(std::signbit(get<double>(table, "d")));
}

TEST(Toml, ReadsStringsAndKeys) {
  const toml::Table table = toml::parse(
      "basic = \"a \\\"b\\\" \\\\ \\t\\n\\u00e9\\U0001F600\"\nraw = 'C:\\new'\nempty = \"\"\n"
      "\"two words\" = 1\n'' = 2\n3-b_C = 3\n",
      "x.toml");
  EXPECT_EQ(get<std::string>(table, "basic"), "a \"b\" \\ \t\n\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(get<std::string>(table, "raw"), "C:\\new");
  EXPECT_EQ(get<std::string>(table, "empty"), "");
  EXPECT_EQ(get<int64_t>(table, "two words"), 1);
  EXPECT_EQ(get<int64_t>(table, ""), 2);
  EXPECT_EQ(get<int64_t>(table, "3-b_C"), 3);
  EXPECT_EQ(toml::find(table, "absent"), nullptr);
}

TEST(Toml, ReadsArraysOverSeveralLines) {
  const toml::Table table =
      toml::parse("a = [1, # one\n  2.5,\n\n  [\"x\", true],\n]\nb = []\n", "x.toml");
  const auto& a = get<toml::Array>(table, "a");
  ASSERT_EQ(a.size(), 3u);
  EXPECT_EQ(std::get<int64_t>(a[0].data), 1);
  EXPECT_EQ(std::get<double>(a[1].data), 2.5);
  EXPECT_EQ(a[1].line, 2);
  EXPECT_EQ(std::get<toml::Array>(a[2].data).size(), 2u);
  EXPECT_EQ(a[2].line, 4);
  EXPECT_TRUE(get<toml::Array>(table, "b").empty());
}

TEST(Toml, ReadsTablesAndArraysOfTables) {
  const toml::Table table = toml::parse(
      "top = 1\n[one]\nx = 2\n[[run]]\nx = 3\n[two]\n[[run]] # again\nx = 4\ny = 5\n", "x.toml");
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(get<int64_t>(get<toml::Table>(table, "one"), "x"), 2);
  EXPECT_TRUE(get<toml::Table>(table, "two").empty());
  const auto& runs = get<toml::Array>(table, "run");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].line, 7);
  EXPECT_EQ(get<int64_t>(std::get<toml::Table>(runs[0].data), "x"), 3);
  EXPECT_EQ(get<int64_t>(std::get<toml::Table>(runs[1].data), "y"), 5);
  EXPECT_EQ(table[2].key, "run");
  EXPECT_EQ(table[2].value.line, 4);
}

TEST(Toml, ReadsWindowsLineEndsAndAByteOrderMark) {
  const toml::Table table =
      toml::parse("\xEF\xBB\xBF# c\r\na = 1\r\nb = [1,\r\n2]\r\n[t]\r\n", "x");
  EXPECT_EQ(get<int64_t>(table, "a"), 1);
  EXPECT_EQ(toml::find(table, "t")->line, 5);
}

TEST(Toml, ReadsTextWithoutALastLineEnd) {
  EXPECT_EQ(get<int64_t>(toml::parse("a = 7", "x"), "a"), 7);
  EXPECT_TRUE(toml::parse("", "x").empty());
  EXPECT_TRUE(toml::parse("# only this", "x").empty());
}

struct Refused {
  const char* text;
  const char* toml_message;  // behind "x.toml:"
};

void expect_refused(const std::vector<Refused>& cases) {
  for (const Refused& refused : cases) {
    EXPECT_EQ(toml_message(refused.text), std::string("x.toml:") + refused.toml_message)
        << refused.text;
  }
}

TEST(Toml, RefusesWhatIsDefinedTwice) {
  expect_refused({
      {"a = 1\n\na = 2", "3: `a` is defined twice, first on line 1; keep one of them"},
      {"[a]\n[b]\n[a]", "3: `a` is defined twice, first on line 1; keep one of them"},
      {"a = 1\n[a]", "2: `a` is defined twice, first on line 1; keep one of them"},
      {"[[a]]\n[a]", "2: `a` is defined twice, first on line 1; keep one of them"},
      {"[a]\n[[a]]", "2: `a` is defined twice, first on line 1; keep one of them"},
      {"a = []\n[[a]]", "2: `a` is defined twice, first on line 1; keep one of them"},
      {"a = [1]\n[[a]]", "2: `a` is defined twice, first on line 1; keep one of them"},
      {"[[a]]\nb = 1\nb = 2", "3: `b` is defined twice, first on line 2; keep one of them"},
      {"\"\\u0000\" = 1\n\"\\u0000\" = 1",
       "2: `?` is defined twice, first on line 1; keep one of them"},
  });
}

TEST(Toml, RefusesBadStrings) {
  expect_refused({
      {"\na = \"x", "2: the string has no closing \"; close it on its own line"},
      {"a = 'x\nb = 1'", "1: the string has no closing '; close it on its own line"},
      {"a = 'x\r\n'", "1: the string has no closing '; close it on its own line"},
      {"a = \"\\x41\"",
       "1: unknown escape in a string; write \\\\ for a backslash, or put the string in '...'"},
      {"a = \"\\",
       "1: unknown escape in a string; write \\\\ for a backslash, or put the string in '...'"},
      {"a = \"\\u12\"", "1: \\u takes 4 hexadecimal digits and \\U takes 8; complete them"},
      {"a = \"\\u-123\"", "1: \\u takes 4 hexadecimal digits and \\U takes 8; complete them"},
      {"a = \"\\uD800\"",
       "1: `D800` is no Unicode character; surrogates and codes above 10FFFF are none"},
      {"a = \"\\U00110000\"",
       "1: `00110000` is no Unicode character; surrogates and codes above 10FFFF are none"},
      {"a = \"\"\"x\"\"\"",
       "1: strings of several lines are not read; use one line, and \\n for a line break"},
      {"a = '''x'''",
       "1: strings of several lines are not read; use one line, and \\n for a line break"},
  });
}

TEST(Toml, RefusesBadNumbers) {
  expect_refused({
      {"a = 9223372036854775808",
       "1: `9223372036854775808` is beyond the range of a 64-bit integer; write one within it"},
      {"a = 1e400", "1: `1e400` is beyond the range of a 64-bit float; write one within it"},
      {"a = 0x10", "1: `0x10`: only decimal numbers are read; write it in decimal"},
      {"a = 007", "1: `007` starts with a zero; remove it"},
      {"a = 1__0", "1: `1__0` is not a number; write 10, 1_000, 0.5 or 1e-3"},
      {"a = 1_", "1: `1_` is not a number; write 10, 1_000, 0.5 or 1e-3"},
      {"a = 1.", "1: `1.` is not a number; write 10, 1_000, 0.5 or 1e-3"},
      {"a = 1e", "1: `1e` is not a number; write 10, 1_000, 0.5 or 1e-3"},
      {"a = 3px", "1: `3px` is not a number; write 10, 1_000, 0.5 or 1e-3"},
      {"a = .5", "1: `.5` is not a value; strings stand in quotes, numbers start with a digit"},
      {"a = +", "1: `+` is not a value; strings stand in quotes, numbers start with a digit"},
  });
}

TEST(Toml, RefusesTheRestOfTomlByName) {
  expect_refused({
      {"a = 1979-05-27",
       "1: the date or time `1979-05-27` is not read; write it as a string, in quotes"},
      {"a = 07:32:00",
       "1: the date or time `07:32:00` is not read; write it as a string, in quotes"},
      {"a = {b = 1}", "1: inline tables are not read; write a [table] and its keys below it"},
      {"a.b = 1", "1: dotted keys are not read; write one [table] and its keys below it"},
      {"[a.b]", "1: dotted keys are not read; write one [table] and its keys below it"},
  });
}

TEST(Toml, RefusesBadSyntax) {
  expect_refused({
      {"task = copy",
       "1: `copy` is not a value; strings stand in quotes, numbers start with a digit"},
      {"[a", "1: the table header is not closed; write [a]"},
      {"[[a]", "1: the table header is not closed; write [[a]]"},
      {"[]",
       "1: a key must stand before `]`; it has letters, digits, - and _, or stands in quotes"},
      {"[",
       "1: a key must stand before the end of the line; it has letters, digits, - and _, or stands "
       "in quotes"},
      {"a", "1: = must follow the key `a`; write key = value"},
      {"a =\nb = 1", "1: a value is missing; write key = value"},
      {"a =", "1: a value is missing; write key = value"},
      {"a = # 1", "1: a value is missing; write key = value"},
      {"a = 1 b = 2", "1: `b = 2` follows the end; put it on a line of its own"},
      {"[a] b = 2", "1: `b = 2` follows the end; put it on a line of its own"},
      {"\na = [1,\n2", "2: the array that opens here has no ]; close it"},
      {"a = [1\nb = 2", "2: , or ] must stand before `b = 2` in the array that opens on line 1"},
      {"a = [,]", "1: a value must stand before `,]`"},
  });
}

TEST(Toml, RefusesBadCharacters) {
  expect_refused({
      {"# \xFF", "1: the bytes are not UTF-8; save the file as UTF-8"},
      {"\na = \"\xC3\"", "2: the bytes are not UTF-8; save the file as UTF-8"},
      {"a = \"\xED\xA0\x80\"", "1: the bytes are not UTF-8; save the file as UTF-8"},
      {"a = \"\xC0\x80\"", "1: the bytes are not UTF-8; save the file as UTF-8"},
      {"\n\na = \"\x01\"", "3: control character 1; remove it, or write it as \\u00XX"},
      {"a = 1\rb = 2", "1: control character 13; remove it, or write it as \\u00XX"},
      {"# \x7F", "1: control character 127; remove it, or write it as \\u00XX"},
  });
}

TEST(Toml, MessagesRepeatLittleOfTheFile) {
  EXPECT_EQ(toml_message("a = " + std::string(100000, 'x')),
            "x.toml:1: `" + std::string(40, 'x') +
                "...` is not a value; strings stand in quotes, numbers start with a digit");
}

TEST(Toml, ArraysNestThirtyTwoDeep) {
  const auto nested = [](size_t depth) {
    return "a = " + std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(toml_message(nested(32)), "no error");
  EXPECT_EQ(toml_message(nested(33)), "x.toml:1: arrays nest deeper than 32; nest them less");
  EXPECT_EQ(toml_message(nested(1000000)), "x.toml:1: arrays nest deeper than 32; nest them less");
}

// A search through the table for every key would take minutes.
TEST(Toml, ReadsManyKeysAndTables) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  for (int i = 0; i < 200000; ++i) text += "[t" + std::to_string(i) + "]\n";
  EXPECT_EQ(toml::parse(text, "x.toml").size(), 400000u);
}

TEST(Toml, RefusesWhatIsTooLargeForAConfiguration) {
  EXPECT_EQ(toml_message(std::string((size_t{1} << 26) + 1, '\n')),
            "x.toml:1: the file is larger than 64 MiB; is it a configuration?");
}

TEST(Toml, QuotedTextReadsBackAsItself) {
  std::string text;
  for (int c = 0; c < 128; ++c) text += static_cast<char>(c);
  text += "\xC3\xA9\xF0\x9F\x98\x80";
  EXPECT_EQ(get<std::string>(toml::parse("a = " + toml::quoted(text), "x"), "a"), text);
  EXPECT_EQ(toml::quoted("a\"\\\n\x01"), "\"a\\\"\\\\\\n\\u0001\"");
}

TEST(Toml, NumbersReadBackAsTheSameFloat) {
  using Limits = std::numeric_limits<double>;
  for (const double value :
       {0.0, -0.0, 1.0, 0.1, 1e-3, 1e22, 123456789.0, 1.0 / 3.0, Limits::max(), Limits::min(),
        Limits::denorm_min(), Limits::infinity(), -Limits::infinity()}) {
    const toml::Table table = toml::parse("a = " + toml::number(value), "x");
    EXPECT_EQ(get<double>(table, "a"), value) << toml::number(value);
    EXPECT_EQ(std::signbit(get<double>(table, "a")), std::signbit(value));
  }
  EXPECT_EQ(toml::number(Limits::quiet_NaN()), "nan");
  EXPECT_EQ(toml::number(1.0), "1.0");
  EXPECT_EQ(toml::number(0.001), "0.001");
  EXPECT_EQ(toml::number(1e300), "1e+300");
}

TEST(Toml, DamagedTextIsReadOrRefused) {
  const std::string good =
      "# run\ntask = \"copy\"\nlr = 1e-3\nseeds = [1, 2, [3.5, 'x']]\nclip = inf\n"
      "\"k\\u00e9y\" = -1_000\n[one]\nflag = true\n[[run]]\nx = 1\n[[run]]\ny = \"\xC3\xA9\"\n";
  hdetach::expect_read_or_refused([&](hdetach::Mutator& mutate, int) { return mutate(good); },
                                  toml_message, "x.toml:");
}

}  // namespace
