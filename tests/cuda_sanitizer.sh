#!/bin/sh
# Runs small cases of the CUDA tests under compute-sanitizer's memcheck and racecheck.
#   tests/cuda_sanitizer.sh build/hdetach_tests
# Exit 0: no error found. Some minutes.
set -eu

tests=${1:?"usage: $0 PATH_OF_HDETACH_TESTS [GTEST_FILTER]"}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

# One and many rows, tiles that are not full, sums split over a cluster, both kernels, lengths,
# scales of both kinds. Larger hidden sizes, where the resident kernel spans a cluster, have few
# steps.
cases="hidden_7_steps hidden_33_rows hidden_64_both_paths no_bias lengths_rows hidden_100_input_2 \
hidden_160_batch_1 hidden_192_rows hidden_200_batch_3 hidden_256_batch_5 \
input_300_one_step input_517"
filter=""
for case in $cases; do
  filter="$filter:Kernels/Parity.StaysInTheErrorBudget/cuda_*_$case"
done
filter=${2:-${filter#:}}

# A filter that finds nothing would pass.
count=$("$tests" --gtest_list_tests --gtest_filter="$filter" | grep -c '^  ' || true)
if [ "$count" -eq 0 ]; then
  echo "$0: the filter finds no test: is there a GPU?" >&2
  exit 2
fi

# Without torch's cache every tensor is an allocation of its own, so that a step past its end is
# seen. LibTorch's own kernels are not our concern, and slow to check.
export PYTORCH_NO_CUDA_MEMORY_CACHING=1
status=0
for tool in memcheck racecheck; do
  echo "$tool: $count tests"
  "$sanitizer" --tool "$tool" --kernel-name kns=hdetach --error-exitcode 99 \
    "$tests" --gtest_filter="$filter" --gtest_brief=1 || status=1
done
exit $status
