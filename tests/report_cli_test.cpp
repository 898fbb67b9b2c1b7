// hdetach report as its users meet it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "report/page.h"
#include "tests/program.h"
#include "tests/report_runs.h"
#include "tests/usage_errors.h"
#include "train/seal.h"

namespace {

namespace fs = std::filesystem;
using hdetach::TemporaryFolder;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::Result;
using hdetach::program::run;
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

// A pipe would be waited for, and what is larger than any run's lines fills the memory.
TEST(ReportCli, FilesThatNoRunHasAreNoticed) {
  const TemporaryFolder folder;
  for (const char* name : {"pipe", "large", "good"}) write_copy_run(folder / "small" / name);
  fs::remove(folder / "small/pipe/metrics.jsonl");
  ASSERT_EQ(::mkfifo((folder / "small/pipe/metrics.jsonl").c_str(), 0600), 0);
  fs::resize_file(folder / "small/large/metrics.jsonl", uintmax_t{200} << 20);
  hdetach::files::write(folder / "small/large/state.safetensors",
                        hdetach::train::sealed({}, {{"epoch", "2"}}));
  const Result result = run("report " + (folder / "small").string() + " --json", "timeout 60");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "pipe/metrics.jsonl: not a file")) << result.err;
  EXPECT_TRUE(contains(result.err, "large/metrics.jsonl: larger than 128 MiB")) << result.err;
  EXPECT_TRUE(contains(result.out, "small/good")) << result.out;
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

// Where -o leads, and what is left there.
class ReportOut : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_page()) GTEST_SKIP() << "no page: " << hdetach::report::no_page_reason();
    write_copy_run(folder_ / "small/plain/seed-1");
    fs::create_directory(folder_ / "out");
  }
  std::string path(const std::string& name) const { return (folder_ / ("out/" + name)).string(); }
  Result report_to(const std::string& name) const {
    return run("report " + (folder_ / "small").string() + " -o " + path(name), "timeout 120");
  }
  void expect_page(const std::string& text) const {
    EXPECT_EQ(text.rfind("<!DOCTYPE html>", 0), 0u) << text.substr(0, 100);
    EXPECT_TRUE(contains(text, "</html>"));
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "out")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  const TemporaryFolder folder_;
};

TEST_F(ReportOut, ALinkStaysALink) {
  hdetach::files::write(path("page.html"), "old");
  fs::create_symlink("page.html", path("link"));
  const Result result = report_to("link");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_symlink(path("link")));
  expect_page(content(path("page.html")));
  EXPECT_EQ(names(), (std::set<std::string>{"link", "page.html"}));
}

TEST_F(ReportOut, APipeIsWrittenTo) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  // Open for both, so that nobody waits for the other end; the reader ends once this is closed.
  const int both_ends = ::open(path("pipe").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const int end = ::open(path("pipe").c_str(), O_RDONLY | O_CLOEXEC);
  std::future<std::string> received = std::async(std::launch::async, [end] {
    std::string text;
    char chunk[4096];
    for (ssize_t n; (n = ::read(end, chunk, sizeof(chunk))) > 0;) text.append(chunk, n);
    return text;
  });
  const Result result = report_to("pipe");
  ::close(both_ends);
  expect_page(received.get());
  ::close(end);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(names(), std::set<std::string>{"pipe"});
}

TEST_F(ReportOut, ADeviceStaysADevice) {
  const std::string null = path("null");
  if (::mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  const int opened = ::open(null.c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) GTEST_SKIP() << "devices cannot be opened here";
  ::close(opened);
  const Result result = report_to("null");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_EQ(names(), std::set<std::string>{"null"});
}

TEST_F(ReportOut, StandardOutputIsWrittenWhereItStands) {
  const std::string file = path("page.html");
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    SCOPED_TRACE(name);
    const Result result = run("report " + (folder_ / "small").string() + " -o " + name,
                              "sh -c 'exec >" + file + "; echo start; \"$@\"; echo end' sh");
    EXPECT_EQ(result.err, "");
    const std::string text = content(file);
    EXPECT_EQ(text.rfind("start\n<!DOCTYPE html>", 0), 0u) << text.substr(0, 100);
    EXPECT_TRUE(contains(text, "</html>"));
    EXPECT_EQ(text.substr(text.size() - 5), "\nend\n");
    EXPECT_FALSE(contains(text, "\npage: "));
  }
}

TEST_F(ReportOut, TwelveAtOnceWriteOneName) {
  std::vector<std::future<Result>> reports;
  for (int i = 0; i < 12; ++i) {
    reports.push_back(std::async(std::launch::async, [this] { return report_to("page.html"); }));
  }
  for (auto& report : reports) {
    const Result result = report.get();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_page(content(path("page.html")));
  EXPECT_EQ(names(), std::set<std::string>{"page.html"});
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
