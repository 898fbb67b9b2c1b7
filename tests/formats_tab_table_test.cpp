// Tables of plain text: lines, fields and numbers, and what is refused.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "formats/tab_table.h"

namespace {

using hdetach::TabTable;

// Every row as "number|text".
std::vector<std::string> rows(const std::string& text) {
  TabTable table(text, "x", 2);
  std::vector<std::string> rows;
  while (table.next()) {
    rows.push_back(std::to_string(table.whole(0)) + "|" + std::string(table.field(1)));
  }
  return rows;
}

std::string table_message(const std::string& text) {
  try {
    rows(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TabTable, ReadsRows) {
  EXPECT_EQ(rows("1\ta b\n-2\tc"), (std::vector<std::string>{"1|a b", "-2|c"}));
  EXPECT_EQ(rows("1\ta\r\n2\t\n"), (std::vector<std::string>{"1|a", "2|"}));
  EXPECT_EQ(rows("1\ta\tb\n"), std::vector<std::string>{"1|a\tb"});
  EXPECT_EQ(rows("1\tcaf\u00E9"), std::vector<std::string>{"1|caf\u00E9"});
  EXPECT_TRUE(rows("").empty());
}

TEST(TabTable, SaysWhichLineIsWrong) {
  EXPECT_EQ(table_message("1\ta\n\n"),
            "x: line 2: 2 fields apart by tabs are expected, here are 1");
  EXPECT_EQ(table_message("1\ta\n2"), "x: line 2: 2 fields apart by tabs are expected, here are 1");
  EXPECT_EQ(table_message("1\t\xFF"), "x: line 1: the bytes are not UTF-8; save the file as UTF-8");
  for (const std::string number : {"", "x", "1.5", "1e3", "NaN", " 1", "1 ", "+1", "0x1"}) {
    EXPECT_EQ(table_message(number + "\ta"),
              "x: line 1: field 1 is `" + number + "`, not a whole number");
  }
  EXPECT_EQ(table_message("9223372036854775807\ta"), "no error");
  EXPECT_EQ(table_message("9223372036854775808\ta"),
            "x: line 1: field 1 is `9223372036854775808`, not a whole number");
}

}  // namespace
