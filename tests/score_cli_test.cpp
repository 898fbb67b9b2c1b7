// hdetach score: what it prints, and what it says of files it cannot use.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "usage_errors.h"

namespace {

using hdetach::TemporaryFolder;
using namespace hdetach::program;
using nlohmann::json;

const char* const kReferences = R"({"info": {"annotations": [1, [2], {}]}, "images": [{"id": 7}],
  "annotations": [{"image_id": 7, "id": 1, "caption": "A dog's bowl."},
                  {"caption": "The bowl\nof a dog", "image_id": 7, "more": {"caption": 5}},
                  {"image_id": 8, "id": 3, "caption": "Two cats"},
                  {"image_id": 9, "id": 4, "caption": "Nobody asks for this one"}]})";
const char* const kCandidates =
    R"([{"image_id": 8, "caption": "two cats"}, {"image_id": 7, "caption": "A dog's bowl"}])";

class ScoreCli : public testing::Test {
 protected:
  Result score(const std::string& references, const std::string& candidates,
               const std::string& flags) {
    std::ofstream(folder_ / "references.json") << references;
    std::ofstream(folder_ / "candidates.json") << candidates;
    return run("score --references '" + (folder_ / "references.json").string() +
               "' --candidates '" + (folder_ / "candidates.json").string() + "' " + flags);
  }

  json scores(const std::string& references, const std::string& candidates,
              const std::string& flags = "--no-meteor") {
    const Result result = score(references, candidates, flags + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(lines(result.out), 1);
    return json::parse(result.out, nullptr, false);
  }

  // One line on stderr, which names file and image.
  void expect_failure(const std::string& references, const std::string& candidates,
                      const std::string& message) {
    const Result result = score(references, candidates, "--no-meteor --json");
    EXPECT_EQ(result.exit_code, 1) << message;
    EXPECT_EQ(result.out, "") << message;
    EXPECT_EQ(lines(result.err), 1) << result.err;
    EXPECT_TRUE(contains(result.err, "hdetach: error: " + folder_.path().string())) << result.err;
    EXPECT_TRUE(contains(result.err, message)) << result.err << "lacks: " << message;
  }

  TemporaryFolder folder_;
};

TEST_F(ScoreCli, PrintsOneJsonObject) {
  const json found = scores(kReferences, kCandidates);
  EXPECT_EQ(found["images"], 2);
  EXPECT_NEAR(found["Bleu_1"].get<double>(), 1, 1e-6);
  EXPECT_NEAR(found["Bleu_2"].get<double>(), 1, 1e-6);
  EXPECT_NEAR(found["Bleu_4"].get<double>(), 1, 1e-6);
  EXPECT_NEAR(found["ROUGE_L"].get<double>(), 1, 1e-12);
  EXPECT_GT(found["CIDEr"].get<double>(), 5);
  EXPECT_GT(found["CIDEr_plain"].get<double>(), 5);
  EXPECT_FALSE(found.contains("METEOR"));
  EXPECT_FALSE(found.contains("per_image"));
}

TEST_F(ScoreCli, GivesEveryImageInTheOrderOfTheCandidates) {
  const json found = scores(kReferences, kCandidates, "--no-meteor --per-image --threads 3");
  ASSERT_EQ(found["per_image"].size(), 2u);
  EXPECT_EQ(found["per_image"][0]["image_id"], 8);
  EXPECT_EQ(found["per_image"][1]["image_id"], 7);
  EXPECT_NEAR(found["per_image"][1]["Bleu_3"].get<double>(), 1, 1e-6);
  const double mean = (found["per_image"][0]["CIDEr"].get<double>() +
                       found["per_image"][1]["CIDEr"].get<double>()) /
                      2;
  EXPECT_NEAR(found["CIDEr"].get<double>(), mean, 1e-12);
}

TEST_F(ScoreCli, PrintsATableForPeople) {
  const Result result = score(kReferences, kCandidates, "--no-meteor");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "2 images\nBleu_1       1.000\n")) << result.out;
  const Result rows = score(kReferences, kCandidates, "--no-meteor --per-image");
  EXPECT_EQ(lines(rows.out), 4) << rows.out;
}

TEST_F(ScoreCli, MeteorsTablesAreNamedOrLeftOut) {
  const std::string flags = "--meteor-data '" + folder_.path().string() + "'";
  const Result result = score(kReferences, kCandidates, flags);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  for (const char* part : {"/english.synsets", "--meteor-data", "--no-meteor"}) {
    EXPECT_TRUE(contains(result.err, part)) << result.err;
  }
  std::ofstream(folder_ / "english.synsets") << "bike\n00000001\n";
  std::ofstream(folder_ / "english.exceptions") << "goose\ngeese\n";
  const json found = scores(kReferences, kCandidates, flags + " --per-image");
  EXPECT_GT(found["METEOR"].get<double>(), 0.9);
  EXPECT_GT(found["per_image"][1]["METEOR"].get<double>(), 0.9);
}

TEST_F(ScoreCli, EmptyCaptionsAreScored) {
  const json found =
      scores(R"({"annotations": [{"image_id": 1, "caption": ""}, {"image_id": 2, "caption": "a"},
                                 {"image_id": 3, "caption": "."}]})",
             R"([{"image_id": 1, "caption": ""}, {"image_id": 2, "caption": " "},
                 {"image_id": 3, "caption": "a b"}])",
             "--no-meteor --per-image");
  EXPECT_EQ(found["per_image"][0]["Bleu_1"], 0);
  EXPECT_EQ(found["per_image"][0]["ROUGE_L"], 1);  // coco-caption: both have the empty word
  EXPECT_EQ(found["per_image"][1]["ROUGE_L"], 0);
  EXPECT_EQ(found["per_image"][2]["CIDEr"], 0);
}

TEST_F(ScoreCli, ALongCaptionIsScored) {
  std::string candidate;
  for (int i = 0; candidate.size() < size_t{10} << 20; ++i) {
    candidate += "a dog, " + std::to_string(i % 1000) + " cats ";
  }
  const json list = json::array({{{"image_id", 7}, {"caption", candidate}}});
  EXPECT_LT(scores(kReferences, list.dump())["Bleu_1"].get<double>(), 1e-5);
  const json word =
      json::array({{{"image_id", 7}, {"caption", std::string(size_t{10} << 20, 'a')}}});
  EXPECT_EQ(scores(kReferences, word.dump())["images"], 1);
}

TEST_F(ScoreCli, SaysWhatIsWrongWithTheFiles) {
  expect_failure(kReferences, R"([{"image_id": 8, "caption": "two)",
                 "/candidates.json: byte 33: not JSON");
  expect_failure(kReferences, "[{\"image_id\": 8, \"caption\": \"t\xFFo\"}]",
                 "/candidates.json: byte 31: not UTF-8");
  expect_failure(kReferences, R"([{"image_id": 8}])",
                 "/candidates.json: entry 0 (image 8): caption is missing");
  expect_failure(kReferences, "[]", "/candidates.json: there is no caption in it");
  expect_failure(kReferences,
                 R"([{"image_id": 8, "caption": "two"}, {"image_id": 8, "caption": "two"}])",
                 "/candidates.json: image 8 has two captions; leave one");
  expect_failure(kReferences, R"([{"image_id": -5, "caption": "two"}])",
                 "/candidates.json: image -5 has a caption, but no reference in ");
  expect_failure(R"({"annotations": [{"image_id": 7, "caption": 5}]})", kCandidates,
                 "/references.json: annotations entry 0 (image 7): caption is not a text");
}

TEST_F(ScoreCli, MissingFilesAreNamed) {
  const Result result = run("score --no-meteor --references /nonexistent/a --candidates /dev/null");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "/dev/null: byte 1: not JSON")) << result.err;
  const Result other = run("score --no-meteor --candidates /nonexistent/c --references /dev/null");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(contains(other.err, "/nonexistent/c: cannot open")) << other.err;
}

TEST_F(ScoreCli, UsageErrorsNameTheFlag) {
  expect_usage_errors(
      {{"score --candidates c.json", "--references", "required"},
       {"score --references r.json", "--candidates", "required"},
       {"score --references r --candidates c --threads 0", "--threads", "0"},
       {"score --references r --candidates c --threads x", "--threads", "x"},
       {"score --references r --candidates c --no-meteor --meteor-data d", "--meteor-data",
        "--no-meteor"},
       {"score --references r --candidates c --metoer-data d", "--metoer-data", "d"}});
}

TEST(Threads, MoreThanTheCoresAreCappedAndSaid) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0 || CPU_COUNT(&mask) >= 1024) {
    GTEST_SKIP() << "this process may use 1024 cores or more";
  }
  for (const char* command :
       {"score --references none --candidates none", "train copy --config none", "eval none",
        "caption none", "sweep none", "features --captions none --images none --weights none"}) {
    const auto result = run(command + std::string(" --threads 1024"));
    EXPECT_NE(result.exit_code, 0) << command;
    EXPECT_TRUE(contains(result.err, "--threads 1024 is more than the ")) << result.err;
    EXPECT_TRUE(contains(result.err, "that this process may use; going on with --threads"))
        << result.err;
  }
}

}  // namespace
