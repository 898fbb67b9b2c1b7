#!/bin/sh
# Trains recorded runs again for a few epochs and compares: all their metrics but times must be the
# same to the last digit.
#   tests/same_bits.sh PROGRAM EPOCHS RUN...
#   tests/same_bits.sh build/hdetach 20 results/demo/plain/seed-1
#   tests/same_bits.sh build-cuda/hdetach 20 results/copy-300/*/seed-3
# A run is trained on the device that its config.toml names. On a CPU only the kernel and the
# LibTorch that its sessions.jsonl names can give the same bits.
# Exit 0: all the same. 1: one differs, or could not be trained.
set -eu

[ $# -ge 3 ] || { sed -n '4,6s/^# *//p' "$0" >&2; exit 2; }
program=$1 epochs=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

first_epochs() {  # METRICS
  head -n "$epochs" "$1" | sed -E 's/"(seconds|updates_per_second)":[^,}]*,?//g'
}

status=0
for run in "$@"; do
  task=$(sed -n 's/^task = "\(.*\)"$/\1/p' "$run/config.toml")
  # Annealing counts from the last epoch; the epochs before it are the same without.
  "$program" train "$task" --config "$run/config.toml" --epochs "$epochs" --anneal-epochs 0 \
    --xray-every 0 --quiet --out "$folder/run" || { status=1; continue; }
  first_epochs "$run/metrics.jsonl" >"$folder/recorded"
  first_epochs "$folder/run/metrics.jsonl" >"$folder/now"
  if [ "$(wc -l <"$folder/now")" -eq "$epochs" ] && cmp -s "$folder/recorded" "$folder/now"; then
    echo "$run: the same for $epochs epochs"
  else
    echo "$run: differs"
    diff "$folder/recorded" "$folder/now" | head -n 4
    tail -n 1 "$run/sessions.jsonl" "$folder/run/sessions.jsonl"
    status=1
  fi
  rm -rf "$folder/run"
done
exit $status
