// Floats as exact sums of three bf16 parts (8 significant bits each, 24 together), laid out as
// tiles. A tile pairs k with k + 16, so that rows and columns are split by the same four
// instructions a part and nothing is shuffled; both sides of a product must agree on that order,
// and do.
#pragma once

#include "kernels/cpu/amx_tiles.h"

namespace {

inline __m512i bits_of(V a) { return _mm512_castps_si512(a); }
inline V float_of(__m512i a) { return _mm512_castsi512_ps(a); }

// One part of two vectors, the first in the low halves. `first` and `second` keep what is left.
// The leading part is rounded, which gives the rest a random sign and the dropped products no bias.
template <bool kLeading>
inline __m512i take_part(V& first, V& second) {
  const __m512i half = _mm512_set1_epi32(kLeading ? 0x8000 : 0);
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i low = _mm512_and_si512(_mm512_add_epi32(bits_of(first), half), mask);
  const __m512i high = _mm512_and_si512(_mm512_add_epi32(bits_of(second), half), mask);
  first = sub(first, float_of(low));
  second = sub(second, float_of(high));
  return _mm512_or_si512(_mm512_srli_epi32(low, 16), high);
}

// The largest bf16 stands for what rounds to infinity: inf - inf would leave NaN in the other
// parts.
inline V finite(V a) {
  const V limit = splat(3.3895314e38f);
  return at_most(limit, at_least(sub(splat(0.0f), limit), a));
}

// But of a gradient, an infinity is not hidden: it becomes NaN.
inline V finite_or_nan(V a) { return add(finite(a), sub(a, a)); }

// Of finite() numbers.
inline void take_parts(V first, V second, __m512i (&parts)[kTilePlanes]) {
  parts[0] = take_part<true>(first, second);
  parts[1] = take_part<false>(first, second);
  parts[2] = take_part<false>(first, second);
}

// Row `row` of three consecutive planes: an A row gets k and k + 16 of one row, a B row gets rows
// k and k + 16 of sixteen columns.
inline void split(V first, V second, Tile* planes, int64_t row) {
  __m512i parts[kTilePlanes];
  take_parts(first, second, parts);
  for (int p = 0; p < kTilePlanes; ++p) _mm512_store_si512(planes[p].value[row], parts[p]);
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
