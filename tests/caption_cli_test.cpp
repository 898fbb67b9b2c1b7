// hdetach caption: captions of a run's data and of files, pictures of attention, and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "formats/files.h"
#include "tests/program.h"
#include "tests/run_files.h"
#include "tests/xml.h"
#ifdef HDETACH_WITH_JPEG
#include "tests/jpeg_images.h"
#include "tests/resnet_arrays.h"
#endif

namespace hdetach {
namespace {

using namespace hdetach::program;
namespace fs = std::filesystem;
using nlohmann::json;

class CaptionCli : public testing::Test {
 protected:
  std::string place(const std::string& name) const { return "'" + (root_ / name).string() + "'"; }

  // A short run in the folder of that name, which has learnt a little.
  void train(const std::string& name, const std::string& model,
             const std::string& flags = "--data generated --updates-per-epoch 60") {
    const Result result = run("train caption --quiet --model " + model +
                              " --train-size 100 --valid-size 30 --hidden 24 --embedding 16"
                              " --rare-words 0 --lr 0.01 --epochs 1 --wordnet none --out " +
                              place(name) + " " + flags);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::string caption(const std::string& name, const std::string& flags) {
    const Result result = run("caption " + place(name) + " " + flags);
    EXPECT_EQ(result.exit_code, 0) << flags << "\n" << result.err;
    EXPECT_EQ(result.err, "") << flags;
    return result.out;
  }
  json read(const fs::path& name) { return json::parse(files::read(root_ / name)); }

  // A message of one line, two where it is a usage error, that has these parts.
  void expect_error(int exit_code, const std::string& arguments,
                    const std::vector<std::string>& parts) {
    const Result result = run("caption " + arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(lines(result.err), exit_code) << result.err;
    for (const std::string& part : parts) {
      EXPECT_TRUE(contains(result.err, part))
          << arguments << ": " << result.err << "lacks " << part;
    }
  }

  TemporaryFolder root_;
};

// Of each panel of a picture: the shares of attention that are drawn, added up.
std::vector<double> attention_sums(const std::string& svg) {
  std::vector<double> sums;
  for (size_t heat = svg.find("class=\"heat\""); heat != std::string::npos;
       heat = svg.find("class=\"heat\"", heat + 1)) {
    const std::string opacity = "fill-opacity=\"", peak = "class=\"peak\" dx=\"6\">";
    const size_t end = svg.find(peak, heat);
    double sum = 0;
    for (size_t at = svg.find(opacity, heat); at < end; at = svg.find(opacity, at + 1)) {
      sum += std::stod(svg.substr(at + opacity.size()));
    }
    sums.push_back(sum * std::stod(svg.substr(end + peak.size())) / 100);
  }
  return sums;
}

TEST_F(CaptionCli, CaptionsScoreAsInTheRun) {
  for (const char* model : {"show-tell", "soft-attention"}) {
    train(model, model);
    const std::string out =
        caption(model, "--split test --json --references " + place("references.json"));
    files::write(root_ / "captions.json", out);
    const Result scored = run("score --no-meteor --json --references " + place("references.json") +
                              " --candidates " + place("captions.json"));
    ASSERT_EQ(scored.exit_code, 0) << scored.err;
    const json scores = json::parse(scored.out), result = read(fs::path(model) / "result.json");
    EXPECT_EQ(scores["images"], 30);
    EXPECT_GT(scores["CIDEr"].get<double>(), 0);
    EXPECT_EQ(scores["CIDEr"], result["test_cider"]);
    for (const auto& [name, score] : result["test_scores"].items()) {
      EXPECT_EQ(scores[name], score) << name;
    }
    // The same for people, and less of it.
    std::string plain;
    const json captions = json::parse(out);
    for (size_t i = 0; i < 3; ++i) {
      plain +=
          captions[i]["image_id"].dump() + "  " + captions[i]["caption"].get<std::string>() + "\n";
    }
    EXPECT_EQ(caption(model, "--split test --limit 3"), plain);
  }
}

TEST_F(CaptionCli, AnotherBeamAndAnotherSplit) {
  train("run", "show-tell");
  // The captions that training keeps of the first validation images are greedy.
  const json metrics = json::parse(files::read(root_ / "run/metrics.jsonl"));
  std::string greedy;
  for (const json& sample : metrics["samples"]) {
    greedy += sample["image_id"].dump() + "  " + sample["caption"].get<std::string>() + "\n";
  }
  EXPECT_EQ(lines(greedy), 8);
  EXPECT_EQ(caption("run", "--split val --beam 1 --limit 8"), greedy);
  EXPECT_EQ(caption("run", "--split val --beam 1 --limit 8 --threads 1 --device cpu"), greedy);
  EXPECT_EQ(lines(caption("run", "--split train")), 100);
  const auto words = [](const std::string& text) {
    return std::count(text.begin(), text.end(), ' ');
  };
  EXPECT_GE(words(caption("run", "--split val --beam 5 --length-power 2")),
            words(caption("run", "--split val --beam 5")));
}

TEST_F(CaptionCli, PicturesShowWhereItLooked) {
  train("run", "soft-attention");
  const json captions = json::parse(
      caption("run", "--split test --limit 4 --json --attention " + place("new/pictures")));
  ASSERT_EQ(captions.size(), 4u);
  for (const json& each : captions) {
    const std::string text = each["caption"];
    const std::string svg =
        files::read(root_ / "new/pictures" / (each["image_id"].dump() + ".svg"));
    EXPECT_EQ(xml_problem(svg), "") << svg;
    EXPECT_TRUE(contains(svg, ">" + text + "</text>")) << svg;
    const std::vector<double> sums = attention_sums(svg);
    EXPECT_EQ(static_cast<int>(sums.size()), std::count(text.begin(), text.end(), ' ') + 1);
    // Rounded: the largest to 0.1%, of at least 11%, the others to 0.001 of it.
    for (const double sum : sums) EXPECT_NEAR(sum, 1, 0.01);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "new/pictures"), {}), 4);
}

TEST_F(CaptionCli, TellsWhatIsWrongWithARun) {
  train("run", "show-tell");
  const std::string run = place("run"), test = " --split test";
  expect_error(1, place("none") + test, {"none holds no run"});
  const fs::path words = root_ / "run/words.txt", best = root_ / "run/best.safetensors";
  const std::string all = files::read(words);

  // Two words in each other's place would give other captions.
  const size_t last = all.rfind('\n', all.size() - 2) + 1, before = all.rfind('\n', last - 2) + 1;
  files::write(words, all.substr(0, before) + all.substr(last) + all.substr(before, last - before));
  const std::string damaged = "run/words.txt is damaged: it is not what best.safetensors was";
  expect_error(1, run + test, {damaged});
  fs::remove(words);
  expect_error(1, run + test, {"run/words.txt is missing", "from a copy"});

  // Weights of an earlier version do not know their words.
  const std::string noted = files::read(best);
  files::write(best, without_notes(noted));
  fs::remove(root_ / "run/last.safetensors");
  files::write(words, all + "platypus\n");
  expect_error(1, run + test, {"run/words.txt has ", "best.safetensors knows ", "same run"});
  files::write(words, "dog\n" + all);
  expect_error(1, run + test, {"run/words.txt: ", "<pad> <start> <end> <unk>"});
  fs::remove(words);
  expect_error(1, run + test, {"run has no words.txt", "copy it"});
  files::write(words, all);
  files::write(best, noted);

  const std::string config = files::read(root_ / "run/config.toml");
  const size_t first = config.find('\n') + 1;  // changed on purpose: without the lines of its seal
  std::string other = config.substr(first, config.find("# checksum") - first);
  const size_t at = other.find("hidden = 24");
  ASSERT_NE(at, std::string::npos);
  files::write(root_ / "run/config.toml", other.replace(at, 11, "hidden = 25"));
  expect_error(1, run + test, {"run/best.safetensors is of another run: hidden 24 (now 25)"});
  files::write(best, without_notes(noted));  // as of an earlier version, which noted no settings
  fs::remove(root_ / "run/state.safetensors");
  fs::remove(root_ / "run/result.json");
  expect_error(1, run + test, {"run/best.safetensors: lstm.weight_ih_l0 is F32 [96,16]"});
  files::write(root_ / "run/config.toml", config);
  fs::remove(best);
  expect_error(1, run + test, {"run has no best.safetensors"});
  files::write(best, "");
  expect_error(1, run + test, {"run/best.safetensors"});
}

TEST_F(CaptionCli, RunsOfOtherTasksAreRefused) {
  const Result trained =
      run("train copy --quiet --delay 3 --hidden 4 --batch 4 --train-size 8"
          " --valid-size 4 --epochs 1 --updates-per-epoch 1 --out " +
          place("copying"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  expect_error(2, place("copying") + " --split test",
               {"RUN ", "a run of task copy", "hdetach train caption"});
}

TEST_F(CaptionCli, TellsWhatIsWrongWithOptions) {
  train("run", "show-tell");
  const std::string run = place("run");
  expect_error(2, run, {"--split", "--image"});
  expect_error(2, run + " --split test --image a.jpg --weights w", {"--split", "not both"});
  expect_error(2, run + " --split tset", {"--split", "tset"});
  expect_error(2, run + " --split test --attention a", {"--attention a", "show-tell", "use a run"});
  expect_error(2, run + " --split test --beam 0", {"--beam", "0"});
  expect_error(2, run + " --split test --length-power -1", {"--length-power", "-1"});
  expect_error(2, run + " --limit 3", {"--limit", "--split"});
  expect_error(2, run + " --image a.jpg", {"--image", "--weights"});
  expect_error(2, run + " --image a.jpg --weights w --positions 9", {"--positions", "9"});
  expect_error(2, run + " --image a.jpg --weights w", {"--image", "made-up features"});
  expect_error(2, run + " --split test --images i", {"--images", "--attention"});
  expect_error(1, run + " --split test --data /nonexistent/folder", {"/nonexistent/folder"});
  expect_error(1, run + " --split test --references /nonexistent/r", {"/nonexistent/r"});
  EXPECT_TRUE(
      contains(program::run("eval " + run).err, "hdetach caption " + (root_ / "run").string()));
}

#ifdef HDETACH_WITH_JPEG
class CaptionFilesCli : public CaptionCli {
 protected:
  static constexpr int kImages = 8;

  // Images of two kinds, what a network that learnt nothing makes of them, and what is said of
  // them.
  void make_data(const std::string& positions) {
    json images = json::array();
    fs::create_directories(root_ / "images/some");
    for (int i = 0; i < kImages; ++i) {
      const std::string file = "i" + std::to_string(i) + ".jpg";
      const bool noisy = i % 2 == 1;
      const int width = 60 + 10 * i, height = 80;
      std::vector<uint8_t> pixels = slope(width, height, 0);
      for (size_t n = 0; noisy && n < pixels.size(); ++n) {
        pixels[n] = static_cast<uint8_t>(random_below(i, n / 12, 2) * 255);  // stripes of 4 pixels
      }
      files::write(root_ / "images/some" / file, encode_jpeg(pixels, width, height));
      json image = {{"imgid", i}, {"filepath", "some"}, {"filename", file}};
      image["split"] = i < 4 ? "train" : i < 6 ? "val" : "test";
      image["sentences"].push_back({{"raw", noisy ? "A noise." : "Yellow, all of it"}});
      images.push_back(image);
    }
    fs::create_directories(root_ / "data");
    files::write(root_ / "data/dataset.json", json{{"images", images}}.dump());
    files::write(root_ / "weights.safetensors", ResNetArrays(1, 0.05).file());
    const Result made =
        run("features --captions " + place("data") + " --images " + place("images") +
            " --weights " + place("weights.safetensors") + " --positions " + positions);
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  std::string files_flags() const {
    return "--image " + place("images/some/i6.jpg") + " " + place("images/some/i7.jpg") +
           " --weights " + place("weights.safetensors") + " ";
  }
  static std::vector<std::string> second_fields(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> fields;
    for (std::string line; std::getline(in, line);) fields.push_back(line.substr(line.find("  ")));
    return fields;
  }
};

TEST_F(CaptionFilesCli, AFileIsCaptionedAsInItsSplit) {
  make_data("49");
  train("run", "soft-attention",
        "--batch 4 --updates-per-epoch 100 --dropout 0 --data " + place("data"));
  const std::string of_split =
      caption("run", "--split test --images " + place("images") + " --attention " + place("a"));
  const std::string of_files = caption("run", files_flags() + "--attention " + place("b"));
  EXPECT_EQ(of_split.substr(0, 3), "6  ");
  EXPECT_EQ(of_files.find((root_ / "images/some/i6.jpg").string() + "  "), 0u) << of_files;
  const std::vector<std::string> captions = second_fields(of_files);
  ASSERT_EQ(captions.size(), 2u);
  EXPECT_NE(captions[0], captions[1]) << "the images do not tell";
  EXPECT_EQ(captions, second_fields(of_split));
  for (const char* name : {"a/7.svg", "b/i7.svg"}) {
    const std::string svg = files::read(root_ / name);
    EXPECT_EQ(xml_problem(svg), "") << name;
    EXPECT_TRUE(contains(svg, "data:image/jpeg;base64,/9j/")) << name;
    EXPECT_TRUE(contains(svg, R"(width="224.0" height="137.8")")) << name;  // as 130 is to 80
    for (const double sum : attention_sums(svg)) EXPECT_NEAR(sum, 1, 0.05) << name;
  }
  EXPECT_EQ(json::parse(caption("run", files_flags() + "--json"))[1]["image"],
            (root_ / "images/some/i7.jpg").string());

  fs::create_directories(root_ / "other");
  fs::copy(root_ / "images/some/i6.jpg", root_ / "other/i6.jpg");
  const std::string run = place("run") + " ";
  expect_error(2, run + files_flags() + " --attention a --image " + place("other/i6.jpg"),
               {"some/i6.jpg", "other/i6.jpg", "both be i6.svg"});
  expect_error(2, run + files_flags() + "--positions 196", {"--positions is 196", "trained on 49"});
  files::write(root_ / "images/some/i7.jpg", "no image");
  const Result broken = program::run("caption " + run + files_flags());
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_TRUE(contains(broken.err, "some/i7.jpg: ")) << broken.err;
  files::write(root_ / "weights.safetensors", ResNetArrays(2).file());
  expect_error(1, run + files_flags(), {"--weights", "did not make the features", "ResNet-50"});
  fs::rename(root_ / "data", root_ / "moved");
  expect_error(2, run + files_flags(), {"--positions is needed", "data"});
  expect_error(2, run + files_flags() + "--positions 1", {"--positions is 1", "soft-attention"});
}

TEST_F(CaptionFilesCli, AModelOfTheWholeImageTakesMeans) {
  make_data("1");
  train("run", "show-tell",
        "--batch 4 --updates-per-epoch 100 --dropout 0 --data " + place("data"));
  fs::rename(root_ / "data", root_ / "moved");
  const auto captions = second_fields(caption("run", files_flags() + "--positions 1"));
  ASSERT_EQ(captions.size(), 2u);
  EXPECT_NE(captions[0], captions[1]) << "the images do not tell";
  EXPECT_EQ(captions, second_fields(caption("run", "--split test --data " + place("moved"))));
}
#endif

}  // namespace
}  // namespace hdetach
