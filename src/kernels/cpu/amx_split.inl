// Floats as sums of three bf16 parts (8 significant bits each, 24 together), laid out as tiles.
#pragma once

#include "kernels/cpu/amx_tiles.h"

namespace {

inline __m512i lanes_of(__m256bh half) {
  return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(half));
}
inline V widen(__m512i low_half) { return _mm512_castsi512_ps(_mm512_slli_epi32(low_half, 16)); }

// A tiles: row `row` of three consecutive planes gets the parts of from[0..31].
inline void split_row(const float* from, Tile* planes, int64_t row) {
  V low = load(from), high = load(from + 16);
  for (int p = 0; p < kTilePlanes; ++p) {
    const __m512i parts = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    _mm512_store_si512(planes[p].value[row], parts);
    low = sub(low, widen(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(parts))));
    high = sub(high, widen(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(parts, 1))));
  }
}

// One part of 16 columns of rows k and k + 1 as pairs; `even` and `odd` keep what is left.
inline __m512i take_pairs(V& even, V& odd) {
  const __m512i low = lanes_of(_mm512_cvtneps_pbh(even)), high = lanes_of(_mm512_cvtneps_pbh(odd));
  even = sub(even, widen(low));
  odd = sub(odd, widen(high));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// B tiles: pair `pair` of three consecutive planes gets rows k and k + 1.
inline void split_pair(V even, V odd, Tile* planes, int64_t pair) {
  for (int p = 0; p < kTilePlanes; ++p) {
    _mm512_store_si512(planes[p].value[pair], take_pairs(even, odd));
  }
}

// Rows become columns, in four rounds of exchanges at distance 1, 2, 4 and 8.
inline void transpose(__m512i (&m)[16]) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // b[4i + j] holds, in 128-bit lane q, elements 4i..4i+3 of column 4q + j.
  for (int j = 0; j < 4; ++j) {
    const __m512i even01 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);
    const __m512i even23 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);
    m[j] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    m[8 + j] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    m[4 + j] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    m[12 + j] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
  }
}

}  // namespace
