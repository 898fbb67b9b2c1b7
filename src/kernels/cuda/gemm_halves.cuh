// Products on the tensor cores with operands split in two halves (f16) instead of two tf32: half as
// many instructions for the same 22 bits of an operand.
//
// Strategy: whoever stages a tile scales it by a power of two, splits it and stores two planes in
// shared memory, so that a number is split once for all warps. Halves have a narrow range: with the
// largest magnitude of a tile scaled to 2^p the two halves of any number leave an absolute error of
// 2^-25, which is 2^-(25+p) of the largest. So a scale is for numbers of one kind, such as gate
// gradients or a column of inputs.
//
// Four warps multiply 64 rows with all columns, 16 rows a warp. On Hopper (sm_90a) that is wgmma,
// which reads both operands from shared memory and is twice as fast; elsewhere mma.sync.
//
// Tensor cores add by truncation: sums stay there for kTileK of k only, the small products first,
// then join a float32 sum.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_tile.cuh"

namespace hdetach::cuda {

// A tile as [high, low][kBlocks][kTileK][64]: a line is 128 bytes of one k. Its 16-byte pieces
// change places with k % 8, so that neither stores along a line nor reads across lines meet bank
// conflicts; wgmma knows this as the 128-byte swizzle. A tile starts at a multiple of 1024 bytes.
template <int kBlocks>
struct HalfTile {
  static constexpr int kLine = 128, kBlock = kTileK * kLine;
  static constexpr int kPlane = kBlocks * kBlock, kBytes = 2 * kPlane;
  static constexpr int kEightLines = 8 * kLine;  // the same column 8 k on

  static __device__ __forceinline__ int at(int k, int column) {
    return column / 64 * kBlock + k * kLine + ((column / 8 ^ k) % 8 * 16) + column % 8 * 2;
  }
  // Four neighbours of a line, scaled, to where at() says.
  static __device__ __forceinline__ void store_quad(char* to, float4 scaled) {
    const HalfPairs first = split_f16(scaled.x, scaled.y), second = split_f16(scaled.z, scaled.w);
    *reinterpret_cast<uint2*>(to) = {first.high, second.high};
    *reinterpret_cast<uint2*>(to + kPlane) = {first.low, second.low};
  }
};

// What four warps multiply: 64 rows of one tile, all columns of the other. Addresses are those of
// shared memory; d[j] is a thread's part of columns 8 j .. 8 j + 7, laid out as by mma.m16n8.
using RowTile = HalfTile<2>;
using ColumnTile = HalfTile<3>;
constexpr int kHalfColumns = 144, kHalfColumnTiles = kHalfColumns / 8;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ uint64_t wgmma_operand(uint32_t shared) {
  constexpr uint64_t kNextColumns = RowTile::kBlock / 16, kNextLines = RowTile::kEightLines / 16;
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return kSwizzle128 | kNextLines << 32 | kNextColumns << 16 | (shared >> 4 & 0x3fff);
}

#define HDETACH_FOUR(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
__device__ __forceinline__ void wgmma(float (&d)[kHalfColumnTiles][4], uint64_t rows,
                                      uint64_t columns, bool fresh) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.eq.s32 p, %74, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n144k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
      "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71}, "
      "%72, %73, p, 1, 1, 1, 1;\n"
      "}"
      : HDETACH_FOUR(0), HDETACH_FOUR(1), HDETACH_FOUR(2), HDETACH_FOUR(3), HDETACH_FOUR(4),
        HDETACH_FOUR(5), HDETACH_FOUR(6), HDETACH_FOUR(7), HDETACH_FOUR(8), HDETACH_FOUR(9),
        HDETACH_FOUR(10), HDETACH_FOUR(11), HDETACH_FOUR(12), HDETACH_FOUR(13), HDETACH_FOUR(14),
        HDETACH_FOUR(15), HDETACH_FOUR(16), HDETACH_FOUR(17)
      : "l"(rows), "l"(columns), "r"(static_cast<int>(fresh)));
}
#undef HDETACH_FOUR

// Calls join(j, d) for each j.
template <typename Join>
__device__ __forceinline__ void multiply_half_tiles(uint32_t rows, uint32_t columns, int warp_group,
                                                    const Join& join) {
  const uint64_t a = wgmma_operand(rows + warp_group * RowTile::kBlock), b = wgmma_operand(columns);
  constexpr int kStep = 2 * RowTile::kEightLines / 16;
  constexpr int kLowRows = RowTile::kPlane / 16, kLowColumns = ColumnTile::kPlane / 16;
  float d[kHalfColumnTiles][4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int step = 0; step < kTileK / 16; ++step) {
    wgmma(d, a + step * kStep + kLowRows, b + step * kStep, step == 0);
    wgmma(d, a + step * kStep, b + step * kStep + kLowColumns, false);
  }
#pragma unroll
  for (int step = 0; step < kTileK / 16; ++step)
    wgmma(d, a + step * kStep, b + step * kStep, false);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int j = 0; j < kHalfColumnTiles; ++j) join(j, d[j]);
}

#else

__device__ __forceinline__ void load_transposed(uint32_t (&out)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared)
               : "memory");
}

template <typename Join>
__device__ __forceinline__ void multiply_half_tiles(uint32_t rows, uint32_t columns, int warp_group,
                                                    const Join& join) {
  constexpr int kSteps = kTileK / 16, kStep = 2 * RowTile::kEightLines;
  constexpr int kTogether = 3;  // sums that do not depend on each other
  const int lane = threadIdx.x % 32, first_row = 64 * warp_group + threadIdx.x / 32 % 4 * 16;
  rows += RowTile::at(lane % 8 + lane / 16 * 8, first_row + lane / 8 % 2 * 8);
  columns += lane / 16 * ColumnTile::kPlane;
  uint32_t high[kSteps][4], low[kSteps][4];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    load_transposed(high[step], rows + step * kStep);
    load_transposed(low[step], rows + step * kStep + RowTile::kPlane);
  }
#pragma unroll
  for (int first = 0; first < kHalfColumnTiles; first += kTogether) {
    float d[kTogether][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t b[kTogether][4];  // high k, high k + 8, low k, low k + 8
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        load_transposed(b[j], columns + ColumnTile::at(lane % 16, 8 * (first + j)) + step * kStep);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) mma_f16(d[j], low[step], b[j][0], b[j][1]);
#pragma unroll
      for (int j = 0; j < kTogether; ++j) mma_f16(d[j], high[step], b[j][2], b[j][3]);
#pragma unroll
      for (int j = 0; j < kTogether; ++j) mma_f16(d[j], high[step], b[j][0], b[j][1]);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) join(first + j, d[j]);
  }
}

#endif

}  // namespace hdetach::cuda
