#!/usr/bin/env bash
# Feeds the readers of files mutated inputs, under AddressSanitizer and UBSan, with libFuzzer.
# Usage: run.sh BUILD_DIR [INPUTS], 1000000 inputs a target unless told. Stops at the first failure;
# the input that caused it stays in BUILD_DIR. Debian's packages: clang, libclang-rt-14-dev, libfmt-dev,
# libjpeg-dev and nlohmann-json3-dev.
set -euo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: run.sh BUILD_DIR [INPUTS]" >&2
  exit 2
fi
mkdir -p "$1"
build=$(cd "$1" && pwd)
inputs=${2:-1000000}
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../../src" && pwd)

# NAME SOURCE...: fuzz_NAME.cpp with these files of src/. Seeds are in corpus/NAME and words to put in
# are in NAME.dict, where there are any.
fuzz() {
  local name=$1 program=$build/fuzz_$1 log=$build/fuzz_$1.log
  shift
  # With fmt in its headers, a target is nothing but its sources; libjpeg goes into one of them.
  clang++ -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -DFMT_HEADER_ONLY -DHDETACH_WITH_JPEG -I"$src" "$here/fuzz_$name.cpp" "${@/#/$src/}" \
    -Wl,--as-needed -ljpeg -o "$program"
  local start=$SECONDS
  # The first folder takes what libFuzzer finds, which does not belong among the seeds.
  mkdir -p "$build/corpus_$name"
  local options=(-runs="$inputs" -max_len=4096 -timeout=10 -artifact_prefix="$build/${name}_")
  [ ! -f "$here/$name.dict" ] || options+=(-dict="$here/$name.dict")
  local folders=("$build/corpus_$name")
  [ ! -d "$here/corpus/$name" ] || folders+=("$here/corpus/$name")
  if ! "$program" "${options[@]}" "${folders[@]}" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "fuzz $name: FAILED after $((SECONDS - start)) s; see $log" >&2
    exit 1
  fi
  # The count is libFuzzer's own: a target that stopped early must not read as clean.
  local ran
  ran=$(sed -n 's/^Done \([0-9]*\) runs in .*/\1/p' "$log")
  if [ -z "$ran" ] || [ "$ran" -lt "$inputs" ]; then
    echo "fuzz $name: FAILED: ${ran:-0} of $inputs inputs ran; see $log" >&2
    exit 1
  fi
  echo "fuzz $name: $ran inputs, clean, $((SECONDS - start)) s"
}

fuzz idx formats/idx.cpp
fuzz jpeg formats/jpeg.cpp
fuzz safetensors formats/safetensors.cpp
fuzz tfjs formats/tfjs_weights.cpp formats/files.cpp formats/descriptor.cpp formats/replacement.cpp
fuzz karpathy formats/karpathy_json.cpp
fuzz tab_table formats/tab_table.cpp formats/toml.cpp formats/toml_text.cpp
fuzz toml formats/toml.cpp formats/toml_text.cpp
fuzz config formats/toml.cpp formats/toml_text.cpp train/config.cpp train/sweep_file.cpp
fuzz captions formats/coco_captions.cpp tasks/ptb_tokenizer.cpp tasks/ptb/abbreviations.cpp \
  tasks/ptb/addresses.cpp tasks/ptb/characters.cpp tasks/ptb/numbers.cpp tasks/ptb/signs.cpp \
  tasks/ptb/words.cpp
