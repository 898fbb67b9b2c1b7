// Eight floats. Anonymous namespace: nothing compiled for this instruction set may be shared.
#pragma once

#include <immintrin.h>

namespace {

using V = __m256;
constexpr int kLanes = 8;
constexpr int kTileRows = 3;  // 3 x 4 accumulators, 3 broadcasts and a weight fill 16 registers

inline V splat(float a) { return _mm256_set1_ps(a); }
inline V load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, V a) { _mm256_storeu_ps(p, a); }
inline __m256i first(int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}
inline V load_first(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
inline void store_first(float* p, V a, int n) { _mm256_maskstore_ps(p, first(n), a); }
inline V add(V a, V b) { return _mm256_add_ps(a, b); }
inline V sub(V a, V b) { return _mm256_sub_ps(a, b); }
inline V mul(V a, V b) { return _mm256_mul_ps(a, b); }
inline V reciprocal(V a) { return _mm256_div_ps(splat(1.0f), a); }
inline V quotient(V a, V b) { return _mm256_div_ps(a, b); }
inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }     // a * b + c
inline V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }   // c - a * b
inline V at_least(V limit, V a) { return _mm256_max_ps(limit, a); }  // NaN in a stays NaN
inline V at_most(V limit, V a) { return _mm256_min_ps(limit, a); }
inline V magnitude(V a) { return _mm256_andnot_ps(splat(-0.0f), a); }
inline V with_sign_of(V a, V sign) {  // a must not be negative
  return _mm256_or_ps(a, _mm256_and_ps(sign, splat(-0.0f)));
}
// a, but 0 where x is below the limit.
inline V zero_below(float limit, V x, V a) {
  return _mm256_andnot_ps(_mm256_cmp_ps(x, splat(limit), _CMP_LT_OQ), a);
}
// 2^n for the integer n that stands in the low bits of `rounded` (see activations.inl).
inline V exponent(V rounded) {
  const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(rounded), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
}

}  // namespace
