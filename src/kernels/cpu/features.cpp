// What the CPU kernels need and whether this machine has it. Compiled for the baseline CPU.
#include "kernels/cpu/kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hdetach {

const char* avx2_unavailable() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return "this CPU has no AVX2 with FMA";
  }
  return nullptr;
}

const char* avx512_unavailable() {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
    return "this CPU has no AVX-512 (F, DQ, BW and VL)";
  }
  return nullptr;
}

namespace {

const char* detect_amx() {
  if (const char* reason = avx512_unavailable()) return reason;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(edx & kAmxBf16) || !(edx & kAmxTile)) {
    return "this CPU has no AMX with bf16";
  }
  // Linux hands out the 8 KB of tile registers on request only.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) {
    return "the kernel refused the AMX tile registers (Linux 5.16 or later grants them)";
  }
  return nullptr;
}

}  // namespace

const char* amx_unavailable() {
  static const char* const reason = detect_amx();
  return reason;
}

}  // namespace hdetach

#endif
