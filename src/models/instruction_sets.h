// A function marked HDETACH_CLONES is compiled for several instruction sets; the loader picks the
// one for the machine. For plain loops that the compiler vectorises; the LSTM itself has kernels.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HDETACH_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define HDETACH_CLONES
#endif
