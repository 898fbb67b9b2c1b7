// hdetach report as its users meet it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "report/page.h"
#include "tests/program.h"
#include "tests/report_runs.h"
#include "tests/usage_errors.h"

namespace {

namespace fs = std::filesystem;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::Result;
using hdetach::program::run;
using hdetach::program::TemporaryFolder;
using hdetach::test::write_copy_run;

bool has_page() { return hdetach::report::no_page_reason().empty(); }

TEST(ReportCli, WritesThePageAndNamesIt) {
  const TemporaryFolder folder;
  write_copy_run(folder / "small/plain/seed-1");
  std::ofstream(folder / "small/plain/seed-1/metrics.jsonl", std::ios::app) << "{\"epoch\":";
  const Result result = run("report " + (folder / "small").string());
  if (!has_page()) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(contains(result.err, "hdetach: error: this hdetach has no page: ")) << result.err;
    GTEST_SKIP() << "no page: " << hdetach::report::no_page_reason();
  }
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string path = (folder / "small/report.html").string();
  EXPECT_EQ(result.out, "page: " + path + "\n");
  EXPECT_TRUE(contains(result.err, "hdetach: notice: ")) << result.err;
  EXPECT_TRUE(contains(result.err, "metrics.jsonl:3: half-written")) << result.err;
  const std::string html = content(path);
  EXPECT_TRUE(contains(html, "\"plain/seed-1\""));
  EXPECT_FALSE(contains(html, "@REPORT_DATA@"));

  const Result nowhere = run("report " + (folder / "small").string() + " -o /nowhere/x.html");
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_TRUE(contains(nowhere.err, "/nowhere/")) << nowhere.err;
}

TEST(ReportCli, PrintsTheDataWithoutAPage) {
  const TemporaryFolder folder;
  write_copy_run(folder / "small/plain/seed-1");
  const Result result = run("report " + (folder / "small").string() + " --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto data = nlohmann::json::parse(result.out);
  EXPECT_EQ(data["title"], "small");
  EXPECT_EQ(data["watching"], false);
  EXPECT_FALSE(fs::exists(folder / "small/report.html"));
}

TEST(ReportCli, NothingToShowFails) {
  const TemporaryFolder folder;
  const std::string empty = folder.path().string(), missing = (folder / "missing").string();
  const Result result = run("report --json " + empty + " " + missing);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "no run found in " + empty + ", " + missing)) << result.err;
  EXPECT_TRUE(contains(result.err, missing + ": No such file or directory")) << result.err;
}

TEST(ReportCli, WrongUse) {
  hdetach::program::expect_usage_errors({{"report . --port 80", "--port", "--watch"},
                                         {"report . --watch -o x.html", "--watch", "--out"}});
}

TEST(ReportCli, WatchServesUntilASignalAndShowsWhatIsNew) {
  if (!has_page()) GTEST_SKIP() << "no page: " << hdetach::report::no_page_reason();
  const TemporaryFolder folder;
  write_copy_run(folder / "small/plain/seed-1");
  int out[2];
  ASSERT_EQ(::pipe(out), 0);
  const std::string name = (folder / "small").string();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::execl(HDETACH_PROGRAM, "hdetach", "report", name.c_str(), "--watch", nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  std::string line;
  for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) line += c;
  const size_t at = line.find("http://127.0.0.1:");
  ASSERT_NE(at, std::string::npos) << line;
  const std::string port = line.substr(at + 17, line.find('/', at + 17) - at - 17);
  const auto get = [&](const std::string& path) {
    const std::string file = (folder / "answer").string();
    const std::string script = "exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET " + path +
                               " HTTP/1.1\\r\\nHost: 127.0.0.1:" + port +
                               "\\r\\n\\r\\n' >&3; cat <&3 >" + file;
    EXPECT_EQ(std::system(("bash -c \"" + script + "\"").c_str()), 0);
    return content(file);
  };
  EXPECT_TRUE(contains(get("/"), "Content-Type: text/html"));
  const std::string before = get("/data.json");
  EXPECT_TRUE(contains(before, "Content-Type: application/json")) << before;
  EXPECT_TRUE(contains(before, "\"watching\":true")) << before;
  EXPECT_FALSE(contains(before, "seed-2"));
  write_copy_run(folder / "small/plain/seed-2");
  EXPECT_TRUE(contains(get("/data.json"), "\"plain/seed-2\""));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ::close(out[0]);
}

}  // namespace
