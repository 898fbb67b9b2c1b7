// The JSON that the page is given (web/DATA.md), and the page with it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "formats/files.h"
#include "report/experiments.h"
#include "report/page.h"
#include "report/page_data.h"
#include "tests/program.h"
#include "tests/report_runs.h"

namespace {

namespace fs = std::filesystem;
using namespace hdetach::report;
using hdetach::TemporaryFolder;
using hdetach::files::write;
using hdetach::program::contains;
using hdetach::test::metrics_line;
using hdetach::test::result_json;
using hdetach::test::write_copy_run;
using nlohmann::json;

std::string data_of(const fs::path& folder, const PageHeading& heading = {}) {
  return page_data(ExperimentReader({folder}).read(), heading);
}

TEST(ReportData, HoldsWhatTheFoldersHold) {
  const TemporaryFolder folder;
  const fs::path run = folder / "small/plain/seed-1";
  write_copy_run(run, {0.25, 0.123456789});
  hdetach::files::append_line(run / "metrics.jsonl", metrics_line(3, "0.5", "null"));
  write(run / "result.json", result_json("stopped-early", "enough", 0.75));
  write(run / "sessions.jsonl", "{\"commit\":\"abc\",\"threads\":16}\n");
  write(run / "xray.jsonl", "{\"epoch\":2,\"n\":1}\n{\"epoch\":1}\n{\"epoch\":2,\"n\":2}\n{}\n");
  const json data = json::parse(
      data_of(folder / "small", {"small", {"hdetach report small"}, "2026-11-16T02:40:00Z", true}));
  EXPECT_EQ(data["format"], 1);
  EXPECT_EQ(data["title"], "small");
  EXPECT_EQ(data["about"][0], "hdetach report small");
  EXPECT_EQ(data["made"], "2026-11-16T02:40:00Z");
  EXPECT_EQ(data["watching"], true);
  EXPECT_EQ(data["notices"].size(), 1u);  // an x-ray without its epoch
  const json& experiment = data["experiments"].at(0);
  EXPECT_EQ(experiment["name"], "small");
  EXPECT_EQ(experiment["task"], "copy");
  EXPECT_EQ(experiment["measure"]["name"], "accuracy");
  EXPECT_EQ(experiment["measure"]["sign"], "%");
  EXPECT_EQ(experiment["chance"], 0.125);
  EXPECT_EQ(experiment["threshold"], 0.99);
  EXPECT_EQ(experiment["table"]["columns"][0], "setting");
  EXPECT_EQ(experiment["table"]["rows"][0][0], "plain");
  EXPECT_EQ(experiment["table"]["rows"][0].size(), experiment["table"]["columns"].size());
  const json& shown = experiment["settings"].at(0)["runs"].at(0);
  EXPECT_EQ(experiment["settings"][0]["name"], "plain");
  EXPECT_EQ(shown["name"], "plain/seed-1");
  EXPECT_EQ(shown["folder"], run.string());
  EXPECT_EQ(shown["seed"], 1);
  EXPECT_EQ(shown["status"], "stopped-early");
  EXPECT_EQ(shown["message"], "enough");
  EXPECT_EQ(shown["curves"].size(), 11u);
  EXPECT_EQ(shown["curves"]["epoch"], json({1, 2, 3}));
  EXPECT_EQ(shown["curves"]["update"], json({100, 200, 300}));
  EXPECT_EQ(shown["curves"]["seconds"], json({2, 4, 6}));
  EXPECT_EQ(shown["curves"]["valid_measure"], json({0.25, 0.12346, 0.5}));
  EXPECT_EQ(shown["curves"]["grad_norm_max"], json({1.5, 1.5, nullptr}));
  EXPECT_EQ(shown["scores"], json::object());
  EXPECT_EQ(shown["samples"], json::array());
  EXPECT_EQ(shown["test"], json({{"accuracy", 0.75}}));
  EXPECT_EQ(shown["xray"], json({{{"epoch", 1}}, {{"epoch", 2}, {"n", 2}}}));
  EXPECT_EQ(shown["config"], json({{"task", "copy"}, {"hidden", "64"}}));
  EXPECT_EQ(shown["sessions"], json({{{"commit", "abc"}, {"threads", 16}}}));
}

TEST(ReportData, CaptionsComeByEpoch) {
  const TemporaryFolder folder;
  write_copy_run(folder / "run", {}, "task = \"caption\"\n");
  hdetach::train::EpochMetrics first, second;
  first.epoch = 1;
  first.caption_scores = {{"CIDEr", 0.25}};
  first.samples = {{474, "a \"dog\""}};
  second.epoch = 2;
  second.caption_scores = {{"CIDEr", 0.5}, {"Bleu_1", 0.75}};
  second.samples = {{474, "a cat"}, {7, "a bus"}};
  write(folder / "run/metrics.jsonl", to_json(first) + "\n" + to_json(second) + "\n");
  hdetach::train::RunResult result;
  result.status = "finished";
  result.measure_is_cider = true;
  result.test_measure = 0.5;
  result.test_caption_scores = {{"CIDEr", 0.5}, {"Bleu_1", 0.625}};
  write(folder / "run/result.json", to_json(result));
  const json data = json::parse(data_of(folder / "run"));
  EXPECT_EQ(data["experiments"][0]["measure"], json({{"name", "CIDEr"}, {"sign", ""}}));
  EXPECT_EQ(data["experiments"][0]["chance"], nullptr);
  const json& run = data["experiments"][0]["settings"][0]["runs"][0];
  EXPECT_EQ(run["seed"], nullptr);
  EXPECT_EQ(run["scores"], json({{"CIDEr", {0.25, 0.5}}, {"Bleu_1", {nullptr, 0.75}}}));
  EXPECT_EQ(run["samples"], json({{{"image_id", 7}, {"captions", {"", "a bus"}}},
                                  {{"image_id", 474}, {"captions", {"a \"dog\"", "a cat"}}}}));
  EXPECT_EQ(run["test"], json({{"CIDEr", 0.5}, {"Bleu_1", 0.625}}));
}

TEST(ReportData, RunsTellHowFarTheyAre) {
  const TemporaryFolder folder;
  write_copy_run(folder / "x/begun");
  write_copy_run(folder / "x/new", {});
  write_copy_run(folder / "x/over");
  write(folder / "x/over/result.json", result_json("diverged", "inf"));
  const json data = json::parse(data_of(folder / "x"));
  const json& settings = data["experiments"][0]["settings"];
  EXPECT_EQ(settings[0]["runs"][0]["status"], "unfinished");
  EXPECT_EQ(settings[1]["runs"][0]["status"], "waiting");
  EXPECT_EQ(settings[1]["runs"][0]["curves"]["epoch"], json::array());
  EXPECT_EQ(settings[2]["runs"][0]["status"], "diverged");
  EXPECT_EQ(settings[2]["runs"][0]["message"], "inf");
}

// Everything that a folder can say, said by someone who wants to run code in the page.
TEST(ReportData, NothingInItCanEndItsScript) {
  const TemporaryFolder folder;
  const std::string evil = "</script><script>alert(1)</script><!--\xE2\x80\xA8\xE2\x80\xA9&'\"";
  const fs::path run = folder / "<script>/<img src=x onerror=alert(1)>/seed-1";
  write_copy_run(run, {0.5}, "task = \"copy\"\nhidden = 64\n\"<b>\" = \"<script>\"\n");
  write(run / "result.json", result_json("diverged", evil));
  write(run / "sessions.jsonl", json({{"cpu", evil}}).dump() + "\n");
  write(run / "xray.jsonl", json({{"epoch", 1}, {evil, evil}}).dump() + "\n");
  const fs::path other = run.parent_path() / "seed-2";
  write_copy_run(other, {0.5}, "task = \"copy\"\nhidden = 64\n");
  write(other / "result.json", result_json(evil, "done"));
  const std::string data = data_of(folder / "<script>", {evil, {evil}, "", false});
  for (const char* part : {"<", "\xE2\x80\xA8", "\xE2\x80\xA9"}) EXPECT_FALSE(contains(data, part));
  const json read = json::parse(data);
  EXPECT_EQ(read["title"], evil);
  EXPECT_EQ(read["experiments"][0]["name"], "<script>");
  const json& shown = read["experiments"][0]["settings"][0]["runs"][0];
  EXPECT_EQ(shown["name"], "<img src=x onerror=alert(1)>/seed-1");
  EXPECT_EQ(shown["message"], evil);
  EXPECT_EQ(shown["sessions"][0]["cpu"], evil);
  EXPECT_EQ(shown["xray"][0][evil], evil);
  EXPECT_EQ(shown["config"]["<b>"], "<script>");
  const auto& notices = read["notices"];  // of config.toml and result.json
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_TRUE(contains(notices[1], "status is \"" + evil)) << notices;
}

// Bytes that no JSON may hold, in each file of a run: the data stays JSON, the file is named, and
// the run beside it is shown as ever.
TEST(ReportData, BytesThatAreNoTextSpoilNoOtherRun) {
  using namespace std::string_literals;
  const std::string metrics = metrics_line(1, "0.5"), result = result_json("finished", "done");
  const struct {
    const char *file, *message;
    std::string start, end;  // around the bytes
  } files[] = {
      {"config.toml", "config.toml:2: ", "task = \"copy\"\ndata = \"", "\"\n"},
      {"metrics.jsonl", "metrics.jsonl:1: not JSON", metrics, "\n"},
      {"result.json", "result.json:1: not JSON", result, ""},
      {"eval.json", "eval.json:1: not JSON", "{\"accuracy\":[]}", "\n"},
      {"xray.jsonl", "xray.jsonl:1: not JSON", "{\"epoch\":1}", "\n"},
      {"sessions.jsonl", "sessions.jsonl:1: not JSON", "{\"cpu\":\"x\"}", "\n"},
      {"../../x.toml", "x.toml:2: ", "task = \"copy\"\n# ", "\n[[setting]]\nname = \"bad\"\n"}};
  for (const auto& file : files) {
    for (const std::string& bytes : {"\0"s, "\0</script>"s, "\x01"s, "\xFF"s, "\xED\xA0\x80"s}) {
      const TemporaryFolder folder;
      write_copy_run(folder / "x/bad/seed-1");
      write_copy_run(folder / "x/good/seed-1");
      write(folder / "x/bad/seed-1" / file.file, file.start + bytes + file.end);
      const json data = json::parse(data_of(folder / "x"), nullptr, false);
      ASSERT_FALSE(data.is_discarded()) << file.file;
      const json& settings = data["experiments"][0]["settings"];
      ASSERT_EQ(settings.size(), 2u) << file.file;
      EXPECT_EQ(settings[1]["runs"][0]["curves"]["epoch"], json({1, 2}));
      ASSERT_EQ(data["notices"].size(), 1u) << file.file;
      EXPECT_TRUE(contains(data["notices"][0], file.message)) << data["notices"][0];
    }
  }
}

// Half a surrogate pair is no character, whether a file has it as bytes or as an escape.
TEST(ReportData, EscapesThatAreNoCharactersAreRefused) {
  const TemporaryFolder folder;
  const fs::path run = folder / "x/plain/seed-1";
  write_copy_run(run, {0.5}, "task = \"copy\"\ndata = \"\\uD800\"\n");
  write(run / "result.json", "{\"status\":\"\\ud800\"}");
  write(run / "xray.jsonl", "{\"epoch\":1,\"x\":\"\\udc00\"}\n\xEF\xBB\xBF{\"epoch\":2}\n");
  const json data = json::parse(data_of(folder / "x"), nullptr, false);
  ASSERT_FALSE(data.is_discarded());
  EXPECT_EQ(data["experiments"][0]["settings"][0]["runs"][0]["xray"], json::array());
  EXPECT_EQ(data["notices"].size(), 4u) << data["notices"];
}

// Escapes of control characters are text as any other.
TEST(ReportData, EscapedControlCharactersStayEscaped) {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  const fs::path run = folder / "x/line\nbreak\x01/seed-1";
  write_copy_run(run, {0.5}, "task = \"copy\"\ndata = \"a\\u0000b\"\n");
  write(run / "result.json", result_json("finished", "a\0b\x7F"s));
  const std::string text = data_of(folder / "x");
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_EQ(text.find('\x01'), std::string::npos);
  const json shown = json::parse(text)["experiments"][0]["settings"][0]["runs"][0];
  EXPECT_EQ(shown["name"], "line\nbreak\x01/seed-1");
  EXPECT_EQ(shown["message"], "a\0b\x7F"s);
  EXPECT_EQ(shown["config"]["data"], "a\0b"s);
}

TEST(ReportData, NamesThatAreNotUtf8AreShownAsFarAsTheyGo) {
  const TemporaryFolder folder;
  write_copy_run(folder / "bad\xFFname");
  const json data = json::parse(data_of(folder.path()));
  EXPECT_EQ(data["experiments"][0]["settings"][0]["name"], "bad\xEF\xBF\xBDname");
}

TEST(ReportData, NoticesAreNotWithoutEnd) {
  Experiments experiments;
  for (int i = 0; i < 1000; ++i) experiments.notices.add("notice");
  const json data = json::parse(page_data(experiments, {}));
  ASSERT_EQ(data["notices"].size(), 101u);
  EXPECT_EQ(data["notices"][100], "and 900 more notices");
  EXPECT_EQ(data["experiments"], json::array());
}

TEST(ReportHtml, TheDataGoesWhereThePageWantsIt) {
  EXPECT_EQ(page("<a>@REPORT_DATA@</a>", "{\"x\":\"$& @REPORT_DATA@\"}"),
            "<a>{\"x\":\"$& @REPORT_DATA@\"}</a>");
  EXPECT_THROW(page("<a></a>", "{}"), std::runtime_error);
}

TEST(ReportHtml, TheProgramHasThePageOrSaysHowToGetIt) {
  const std::string html(page_template()), reason = no_page_reason();
  EXPECT_NE(html.empty(), reason.empty());
  if (html.empty()) {
    EXPECT_TRUE(contains(reason, "apt-get install") || contains(reason, "npm ci")) << reason;
    EXPECT_TRUE(contains(reason, "./run build")) << reason;
    GTEST_SKIP() << "no page: " << reason;
  }
  EXPECT_EQ(html.find("@REPORT_DATA@"), html.rfind("@REPORT_DATA@"));
  EXPECT_TRUE(
      contains(html, "<script type=\"application/json\" id=\"report-data\">@REPORT_DATA@<"));
}

}  // namespace
