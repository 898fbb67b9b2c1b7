#!/usr/bin/env bash
# The page of `hdetach report` in a real browser, reported as GoogleTest does.
#   report_page_test.sh page BUILD_DIR NODE             the page with data of its own
#   report_page_test.sh real BUILD_DIR NODE             a page that the program made of run folders
# Exit code 77: skipped, where there is no page or no Chromium. Screenshots stay in
# BUILD_DIR/page-screenshots.
set -euo pipefail
kind=$1 build=$2 node=$3
suite=Page
[ "$kind" = page ] || suite=RealPage
page=$build/generated/report_page.html
out=$build/page-screenshots/$kind

skip() {
  echo "$suite: NOT TESTED: $1"
  echo "[  SKIPPED ] $suite: NOT TESTED, $1 (0 ms)"
  exit 77
}

grep -q '@REPORT_DATA@' "$page" || skip "the program has no page: $(head -n 1 "$page")"
command -v "$node" >/dev/null || skip "no node: apt-get install nodejs"
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || skip "no Chromium: apt-get install chromium"

# Runs of two experiments: copying with a setting that learns, and captions; one run is cut off.
make_runs() {
  local folder=$1 setting seed
  for setting in plain detach-0.25 detach-0.5; do
    for seed in 1 2 3; do
      local run=$folder/copy-50/$setting/seed-$seed
      mkdir -p "$run"
      printf 'task = "copy"\ndelay = 50\nhidden = 64\nseed = %s\n' "$seed" >"$run/config.toml"
      echo '{"commit":"0123abc","cpu":"a CPU","threads":2}' >"$run/sessions.jsonl"
      awk -v seed="$seed" -v fast="${setting#*-}" 'BEGIN {
        for (e = 1; e <= 60; ++e) {
          a = 1 - 0.875 * exp(-e * (fast == "plain" ? 0.01 : 0.05) * (1 + seed / 10))
          printf "{\"epoch\":%d,\"update\":%d,\"train_loss\":%.5f,\"valid_loss\":%.5f,", e, 100 * e, 1 - a, 1.1 - a
          printf "\"valid_accuracy\":%.5f,\"grad_norm_mean\":%.4f,\"grad_norm_max\":%s,", a, 0.1 + 1 / e, e == 7 ? "null" : 5 / e
          printf "\"clipped\":%.3f,\"skipped\":0,\"detach\":0,\"seconds\":%.2f,\"updates_per_second\":50}\n", 1 / e, 2 * e
        }
      }' >"$run/metrics.jsonl"
      for e in 20 40 60; do
        printf '{"epoch":%s,"update":%s00,"weight_scale":null,"detach":0,"steps":60,"orders":["0","1","rest"],"weights":{"norm":1.2,"by_order":[0.3,0.5,0.4],"cell_share":0.25},"states":{"lags":[0,1,2],"norm":[1.0,0.5,0.2],"by_order":[[0.5,0.3,0.2],[0.2,0.2,0.1],[0.1,0.05,0.05]],"cell_share":[0.5,0.4,0.5]}}\n' "$e" "$e"
      done >"$run/xray.jsonl"
    done
  done
  echo '{"status":"finished","epochs":60,"updates":6000,"best_epoch":60,"best_valid_accuracy":0.9,"seconds":120,"message":""}' \
    >"$folder/copy-50/plain/seed-1/result.json"
  printf '{"epoch":61,"upd' >>"$folder/copy-50/plain/seed-2/metrics.jsonl"
  # A NUL byte spoils its own line, not the page.
  printf '{"epoch":61}\0\n' >>"$folder/copy-50/detach-0.5/seed-3/metrics.jsonl"
  printf 'task = "copy"\nseeds = [1, 2, 3, 4]\n[[setting]]\nname = "plain"\npaper = "82 at best"\n[[setting]]\nname = "detach-0.25"\n' \
    >"$folder/copy-50/copy-50.toml"
  local run=$folder/show-tell/plain/seed-1
  mkdir -p "$run"
  printf 'task = "caption"\nhidden = 64\n' >"$run/config.toml"
  for e in 1 2 3; do
    printf '{"epoch":%s,"update":%s0,"train_loss":4,"valid_loss":3,"valid_cider":0.%s,"valid_scores":{"Bleu_1":0.5,"CIDEr":0.%s},"grad_norm_mean":1,"grad_norm_max":2,"clipped":0,"skipped":0,"detach":0,"seconds":%s,"updates_per_second":9,"samples":[{"image_id":474,"caption":"a <b>dog</b> %s"}]}\n' "$e" "$e" "$e" "$e" "$e" "$e"
  done >"$run/metrics.jsonl"
}

rm -rf "$out"
mkdir -p "$out"
cd "$build/web"
if [ "$kind" = page ]; then
  arguments=(test/page_test.mjs "$page" "$out")
else
  runs=$(mktemp -d)
  trap 'rm -rf "$runs"' EXIT
  make_runs "$runs"
  "$build/hdetach" report "$runs" -o "$out/report.html"
  arguments=(test/real_page_test.mjs "$out/report.html" "$out")
fi
code=0
"$node" "${arguments[@]}" || code=$?
[ $code -ne 77 ] || skip "its test says why above"
exit $code
