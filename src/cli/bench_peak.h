#pragma once

namespace hdetach::cli {

// The rate at which `threads` threads run independent float32 multiply-adds from registers, in
// 1e9 FLOP/s (a multiply-add counts two): the best of `runs` runs of about 10 ms.
double fma_peak_gflops(int threads, int runs);

}  // namespace hdetach::cli
