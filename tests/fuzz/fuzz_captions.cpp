// Any bytes as COCO's caption files and as a caption: read or refused, and words without a gap.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/coco_captions.h"
#include "tasks/ptb_tokenizer.h"

namespace {

void check_words(const std::string& caption) {
  const std::string words = " " + hdetach::tasks::ptb_tokenize(caption) + " ";
  if (words != "  " && words.find("  ") != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace coco = hdetach::coco;
  const std::string bytes(data, data + size);
  check_words(bytes);
  for (const auto parse : {coco::parse_references, coco::parse_candidates}) {
    try {
      for (const coco::Caption& caption : parse(bytes, "x")) check_words(caption.text);
    } catch (const coco::Error&) {
    }
  }
  return 0;
}
