// Whole files: replaced as a whole, nothing left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/files.h"
#include "formats/mapped_file.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"

namespace {

namespace files = hdetach::files;
namespace fs = std::filesystem;

using Files = hdetach::FilesFolder;
using hdetach::test::error_text;

TEST_F(Files, ReadsWhatItWrites) {
  std::string bytes(200000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 3);
  const fs::path path = folder_ / "x";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, bytes.size()}) {
    files::write(path, bytes.substr(0, size));
    EXPECT_EQ(files::read(path), bytes.substr(0, size));
    EXPECT_EQ(files::read_gzip(path, bytes.size()), bytes.substr(0, size));
  }
  EXPECT_EQ(names(), std::set<std::string>{"x"});
}

TEST_F(Files, WriteReplacesTheFileAsAWhole) {
  const fs::path path = put("x", "old");
  std::ifstream reader(path);
  files::write(path, "new content");
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old") << "a reader that had the file open saw the new content";
  EXPECT_EQ(files::read(path), "new content");
}

TEST_F(Files, WriteRemovesWhatAKilledProcessLeft) {
  put("x.hdetach-tmp", "half of something long");
  put("x.tmp", "a file of the user's");
  files::write(folder_ / "x", "new");
  EXPECT_EQ(files::read(folder_ / "x"), "new");
  EXPECT_EQ(names(), (std::set<std::string>{"x", "x.tmp"}));
}

// A limit on the size of files kills in the middle of a write.
TEST_F(Files, ManyKilledProcessesLeaveOneTemporaryFile) {
  put("x", "old");
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit most{1000, 1000}, none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      setrlimit(RLIMIT_FSIZE, &most);
      signal(SIGXFSZ, SIG_DFL);
      files::write(folder_ / "x", std::string(100000, 'x'));
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  }
  EXPECT_EQ(names(), (std::set<std::string>{"x", "x.hdetach-tmp"}));
  EXPECT_EQ(files::read(folder_ / "x"), "old");
  files::write(folder_ / "x", "new");
  EXPECT_EQ(names(), std::set<std::string>{"x"});
}

TEST_F(Files, WriteLeavesTheTemporaryFileOfALivingProcess) {
  const fs::path other = put("x.hdetach-tmp", "being written");
  const int held = open(other.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  files::write(folder_ / "x", "new");
  EXPECT_EQ(names(), (std::set<std::string>{"x", "x.hdetach-tmp"}));
  EXPECT_EQ(files::read(other), "being written");
  close(held);
  files::write(folder_ / "x", "newer");
  EXPECT_EQ(names(), std::set<std::string>{"x"});
}

TEST_F(Files, WriteOpensNoTemporaryNameThroughALink) {
  put("victim", "untouched");
  for (const char* link : {"x.hdetach-tmp", "x.hdetach-tmp-1", "x.tmp"}) {
    fs::create_symlink("victim", folder_ / link);
  }
  fs::create_directory(folder_ / "x.hdetach-tmp-2");
  files::write(folder_ / "x", "new");
  EXPECT_EQ(files::read(folder_ / "x"), "new");
  EXPECT_EQ(files::read(folder_ / "victim"), "untouched");
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(Files, TwelveProcessesWriteOneName) {
  const fs::path path = folder_ / "x";
  std::vector<pid_t> children;
  for (int i = 0; i < 12; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        for (int j = 0; j < 20; ++j) files::write(path, std::string(100000 + i, 'a' + i));
      } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string bytes = files::read(path);
  ASSERT_GE(bytes.size(), 100000u);
  EXPECT_EQ(bytes, std::string(100000 + bytes[0] - 'a', bytes[0]));
  EXPECT_EQ(names(), std::set<std::string>{"x"});
}

TEST_F(Files, WriteFollowsLinks) {
  fs::create_directory(folder_ / "far");
  put("far/file", "old");
  fs::create_symlink("far/second", folder_ / "first");
  fs::create_symlink("file", folder_ / "far/second");
  fs::create_symlink((folder_ / "far/made").string(), folder_ / "dangling");
  files::write(folder_ / "first", "new");
  files::write(folder_ / "dangling", "made");
  for (const char* link : {"first", "far/second", "dangling"}) {
    EXPECT_TRUE(fs::is_symlink(folder_ / link)) << link;
  }
  EXPECT_EQ(files::read(folder_ / "far/file"), "new");
  EXPECT_EQ(files::read(folder_ / "far/made"), "made");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(error_text(folder_, [&] { files::write(folder_ / "loop", "x"); }),
            "DIR/loop: cannot open: Too many levels of symbolic links");
}

mode_t mode_of(const fs::path& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST_F(Files, WriteKeepsTheModeAndTheOwner) {
  const mode_t before = umask(027);
  files::write(folder_ / "new", "x");
  const fs::path path = put("x", "old");
  for (const mode_t mode : {0600, 0444, 0666, 0751}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    files::write(path, "new");
    EXPECT_EQ(mode_of(path), mode);
  }
  umask(before);
  EXPECT_EQ(mode_of(folder_ / "new"), 0640u);
  if (geteuid() != 0) return;  // only root can give a file away
  ASSERT_EQ(chown(path.c_str(), 1234, 5678), 0);
  files::write(path, "newer");
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 5678u);
}

TEST_F(Files, WriteWritesToAPipe) {
  const fs::path pipe = folder_ / "pipe", link = folder_ / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", link);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  files::write(link, "through ");
  files::write(pipe, "it");
  char bytes[20] = {};
  EXPECT_EQ(read(reader, bytes, sizeof(bytes)), 10);
  EXPECT_STREQ(bytes, "through it");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(names(), (std::set<std::string>{"link", "pipe"}));
}

TEST_F(Files, WriteReplacesNoDevice) {
  const fs::path null = folder_ / "null";
  if (mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  const int opened = open(null.c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) GTEST_SKIP() << "devices cannot be opened here";
  close(opened);
  fs::create_symlink("null", folder_ / "link");
  files::write(null, "nothing");
  files::write(folder_ / "link", "nothing");
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_EQ(names(), (std::set<std::string>{"link", "null"}));
  EXPECT_EQ(error_text(folder_, [&] { files::GrowingFile growing(null); }),
            "DIR/null: is not a regular file; name another");
  EXPECT_EQ(names(), (std::set<std::string>{"link", "null"}));
}

TEST_F(Files, AGrowingFileFollowsLinks) {
  put("victim", "untouched");
  fs::create_directory(folder_ / "far");
  fs::create_symlink("far/file", folder_ / "link");
  {
    files::GrowingFile file(folder_ / "link");
    EXPECT_EQ(file.part(), folder_ / "far/file.part");
    EXPECT_EQ(error_text(folder_, [&] { files::GrowingFile other(folder_ / "link"); }),
              "DIR/far/file.part: another process is writing it; wait for that one");
    file.append("content");
    file.complete();
  }
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(files::read(folder_ / "far/file"), "content");
  fs::create_symlink("victim", folder_ / "y.part");
  EXPECT_EQ(error_text(folder_, [&] { files::GrowingFile other(folder_ / "y"); }),
            "DIR/y.part: cannot open: Too many levels of symbolic links");
}

TEST_F(Files, WriteWithoutAFolderGoesToTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  files::write("x", "here");
  fs::current_path(before);
  EXPECT_EQ(files::read(folder_ / "x"), "here");
}

TEST_F(Files, AFailedWriteLeavesNothing) {
  fs::create_directories(folder_ / "x" / "inner");
  EXPECT_EQ(error_text(folder_, [&] { files::write(folder_ / "x", "new"); }),
            "DIR/x: cannot replace: Is a directory");
  EXPECT_EQ(names(), std::set<std::string>{"x"});
  EXPECT_EQ(error_text(folder_, [&] { files::write(folder_ / "absent" / "x", "new"); }),
            "DIR/absent/x: cannot write: No such file or directory");
}

TEST_F(Files, AFailedReadNamesTheReason) {
  EXPECT_EQ(error_text(folder_, [&] { files::read(folder_ / "x"); }),
            "DIR/x: cannot open: No such file or directory");
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(folder_ / "x", 10); }),
            "DIR/x: cannot open: No such file or directory");
  fs::create_directory(folder_ / "y");
  EXPECT_EQ(error_text(folder_, [&] { files::read(folder_ / "y"); }),
            "DIR/y: cannot read: Is a directory");
}

TEST_F(Files, AppendLineAddsLines) {
  const fs::path path = folder_ / "log";
  files::append_line(path, "one");
  files::append_line(path, "");
  files::append_line(path, "three");
  EXPECT_EQ(files::read(path), "one\n\nthree\n");
  EXPECT_EQ(error_text(folder_, [&] { files::append_line(folder_ / "absent" / "log", "x"); }),
            "DIR/absent/log: cannot open: No such file or directory");
}

TEST_F(Files, AppendLineLeavesHalfALineAlone) {
  const fs::path path = folder_ / "log";
  files::write(path, "one\ntw");
  files::append_line(path, "three");
  EXPECT_EQ(files::read(path), "one\ntw\nthree\n");
}

TEST_F(Files, ReadRegularReadsFilesOnly) {
  put("x", "content");
  EXPECT_EQ(files::read_regular(folder_ / "x"), "content");
  EXPECT_EQ(files::read_regular(folder_ / "x", 7), "content");
  files::write(folder_ / "large", std::string(size_t{2} << 20, 'x') + "x");
  EXPECT_EQ(error_text(folder_, [&] { files::read_regular(folder_ / "large", size_t{2} << 20); }),
            "DIR/large: larger than 2 MiB");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);  // opening one would wait for a writer
  fs::create_symlink("pipe", folder_ / "link");
  EXPECT_EQ(error_text(folder_, [&] { files::read_regular(folder_ / "link"); }),
            "DIR/link: not a file");
  EXPECT_EQ(error_text(folder_, [&] { files::read_regular(folder_ / "absent"); }),
            "DIR/absent: cannot open: No such file or directory");
}

// As /dev/stdout leads to one: who opened the file may have written, and may write on.
TEST_F(Files, WriteToAnOpenFileGoesWhereItStands) {
  const fs::path path = folder_ / "x", link = folder_ / "link";
  const int opened = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(opened, "before, ", 8), 8);
  files::write("/proc/self/fd/" + std::to_string(opened), "between, ");
  fs::create_symlink("/dev/fd/" + std::to_string(opened), link);
  files::write(link, "linked, ");
  ASSERT_EQ(write(opened, "after", 5), 5);
  close(opened);
  EXPECT_EQ(files::read(path), "before, between, linked, after");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(names(), (std::set<std::string>{"link", "x"}));
}

// A limit on the size of files stands for a full disk, which takes the first bytes of a line too.
TEST_F(Files, ALineThatDoesNotFitLeavesNoPart) {
  files::append_line(folder_ / "x", "ab");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{5, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string error =
      error_text(folder_, [&] { files::append_line(folder_ / "x", "cdefg"); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "DIR/x: cannot write: File too large");
  EXPECT_EQ(files::read(folder_ / "x"), "ab\n");
}

TEST_F(Files, WhatIsNoRegularFileTakesNoLineAndIsNotReplaced) {
  ASSERT_EQ(mkfifo((folder_ / "x").c_str(), 0600), 0);
  EXPECT_EQ(error_text(folder_, [&] { files::append_line(folder_ / "x", "a"); }),
            "DIR/x: not a file");
  EXPECT_EQ(error_text(folder_, [&] { files::write_regular(folder_ / "x", "a"); }),
            "DIR/x: not a file");
  EXPECT_TRUE(fs::is_fifo(folder_ / "x"));
}

TEST_F(Files, AFullDiskIsNamed) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  fs::create_symlink("/dev/full", folder_ / "x");
  EXPECT_EQ(error_text(folder_, [&] { files::write(folder_ / "x", "x"); }),
            "DIR/x: cannot write: No space left on device");
  EXPECT_TRUE(fs::is_symlink(folder_ / "x"));
}

TEST_F(Files, AMappedFileHasItsBytes) {
  files::MappedFile file(put("a", "1234"));
  EXPECT_EQ(file.bytes(), "1234");
  EXPECT_EQ(files::MappedFile(put("empty", "")).size(), 0u);
  files::MappedFile other(put("b", "56"));
  other = std::move(file);
  EXPECT_EQ(other.bytes(), "1234");
  const files::MappedFile third(std::move(other));
  EXPECT_EQ(third.bytes(), "1234");
}

TEST_F(Files, WhatCannotBeMappedSaysWhy) {
  const auto message = [](const fs::path& path) -> std::string {
    try {
      files::MappedFile file(path);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string folder = folder_.string();
  EXPECT_EQ(message(folder_ / "none"), folder + "/none: cannot map: No such file or directory");
  EXPECT_EQ(message(folder_), folder + ": cannot map: not a regular file");
}

}  // namespace
