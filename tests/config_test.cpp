// The configuration: one table of fields behind flags, files and checks.
#include "train/config.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "train/group_key.h"

namespace hdetach {
namespace {

using train::Config;

TEST(Config, DefaultsAreThePapers) {
  const Config copy = train::default_config("copy"), mnist = train::default_config("mnist");
  EXPECT_EQ(copy.train_size, 100000);
  EXPECT_EQ(copy.valid_size, 5000);
  EXPECT_EQ(copy.hidden, 128);
  EXPECT_EQ(copy.updates_per_epoch, 1000);
  EXPECT_EQ(mnist.train_size, 50000);
  EXPECT_EQ(mnist.valid_size, 10000);
  EXPECT_EQ(mnist.hidden, 100);
  EXPECT_EQ(mnist.epochs, 200);
  EXPECT_EQ(mnist.updates_per_epoch * mnist.batch, mnist.train_size);
  for (const Config& config : {copy, mnist}) {
    EXPECT_EQ(config.batch, 100);
    EXPECT_EQ(config.lr, 1e-3);
    EXPECT_EQ(config.clip, 1.0);
    EXPECT_EQ(config.layers, 1);
  }
}

TEST(Config, EveryFieldIsWrittenAndReadBack) {
  for (const char* task : {"copy", "mnist"}) {
    Config config = train::default_config(task);
    for (const train::Field& field : train::fields(task)) {
      // Another value than the default, of the field's own type.
      if (!field.choices.empty()) {
        train::set(config, field, field.choices.back());
      } else if (std::holds_alternative<std::string Config::*>(field.member)) {
        train::set(config, field, std::string("a \"folder\" \\ of\nsorts \xC3\xA9"));
      } else if (std::holds_alternative<bool Config::*>(field.member)) {
        train::set(config, field, std::string("true"));
      } else if (std::holds_alternative<double Config::*>(field.member)) {
        train::set(config, field, std::string("0.1234567890123456"));
      } else {
        train::set(config, field, std::string("17"));
      }
    }
    const std::string text = train::to_toml(config);
    const Config again = train::parse_config(text, "again.toml");
    for (const train::Field& field : train::fields(task)) {
      EXPECT_EQ(train::text(again, field), train::text(config, field)) << field.name;
    }
    EXPECT_EQ(train::to_toml(again), text);
  }
}

TEST(Config, NamesAreUniqueAndExplained) {
  for (const char* task : {"copy", "mnist"}) {
    std::set<std::string> names;
    for (const train::Field& field : train::fields(task)) {
      EXPECT_TRUE(names.insert(field.name).second) << field.name;
      EXPECT_GT(std::string(field.help).size(), 8u) << field.name;
    }
  }
}

std::string error_of(const std::string& text) {
  try {
    train::parse_config(text, "x.toml");
  } catch (const toml::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, ErrorsNameFileLineFieldValueAndRule) {
  EXPECT_EQ(error_of(""), "x.toml:1: task must be \"copy\", \"mnist\" or \"caption\"");
  EXPECT_EQ(error_of("\ntask = \"sum\""),
            "x.toml:2: task must be \"copy\", \"mnist\" or \"caption\"");
  EXPECT_EQ(error_of("task = \"copy\"\ndelay = 0"),
            "x.toml:2: delay is 0; it must be a whole number in 1 to 1000000");
  EXPECT_EQ(error_of("task = \"copy\"\ndelay = 2.5"),
            "x.toml:2: delay is 2.5; it must be a whole number in 1 to 1000000");
  EXPECT_EQ(error_of("task = \"copy\"\nclip = nan"), "x.toml:2: clip is nan; it must be 0 or more");
  EXPECT_EQ(error_of("task = \"copy\"\npath = \"both\""),
            "x.toml:2: path is \"both\"; it must be one of hidden, cell");
  EXPECT_EQ(error_of("task = \"mnist\"\npermute = 1"),
            "x.toml:2: permute is 1; it must be true or false");
  EXPECT_EQ(error_of("task = \"mnist\"\nlr = [1e-3]"),
            "x.toml:2: lr is a list; it must be in 0 to 1000");
  EXPECT_EQ(error_of("task = \"mnist\"\ndelay = 3"),
            "x.toml:2: task mnist has no setting \"delay\"; hdetach train mnist --help lists them");
  EXPECT_EQ(error_of("task = \"copy\"\nlr = 0"), "x.toml: lr is 0; it must be above 0");
  EXPECT_EQ(error_of("task = \"mnist\"\ndata = \"\""),
            "x.toml:2: data is \"\"; it must be a text that is not empty");
}

TEST(Config, AWholeNumberServesAsAFloat) {
  const Config config = train::parse_config("task = \"copy\"\nclip = 0\ndetach = 1\n", "x.toml");
  EXPECT_EQ(config.clip, 0.0);
  EXPECT_EQ(config.detach, 1.0);
}

TEST(GroupKey, RunsOfOneShapeShareItAndOthersDoNot) {
  const Config base = train::default_config("copy");
  Config same = base;
  same.seed = 7;
  same.detach = 0.5;
  same.lr = 0.1;
  same.init = "chrono";
  same.epochs = 3;
  same.updates_per_epoch = 5;
  same.train_size = 10;
  EXPECT_EQ(train::group_key(same), train::group_key(base));
  for (const char* name :
       {"delay", "symbols", "hidden", "layers", "batch", "valid-size", "path", "device"}) {
    Config other = base;
    const train::Field& field = *train::find_field("copy", name);
    train::set(other, field, field.choices.empty() ? "17" : field.choices.back());
    EXPECT_NE(train::group_key(other), train::group_key(base)) << name;
  }
}

}  // namespace
}  // namespace hdetach
