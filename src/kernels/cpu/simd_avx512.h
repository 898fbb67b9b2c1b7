// Sixteen floats. Anonymous namespace: nothing compiled for this instruction set may be shared.
#pragma once

#include <immintrin.h>

namespace {

using V = __m512;
constexpr int kLanes = 16;
constexpr int kTileRows = 6;  // 6 x 4 accumulators, 4 weights and a broadcast fit 32 registers

inline V splat(float a) { return _mm512_set1_ps(a); }
inline V load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, V a) { _mm512_storeu_ps(p, a); }
inline __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
inline V load_first(const float* p, int n) {
  return n == kLanes ? load(p) : _mm512_maskz_loadu_ps(first(n), p);
}
inline void store_first(float* p, V a, int n) {
  if (n == kLanes) return store(p, a);
  _mm512_mask_storeu_ps(p, first(n), a);
}
inline V add(V a, V b) { return _mm512_add_ps(a, b); }
inline V sub(V a, V b) { return _mm512_sub_ps(a, b); }
inline V mul(V a, V b) { return _mm512_mul_ps(a, b); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }    // a * b + c
inline V fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b
// 1 / a to one unit in the last place: 14 bits and a Newton step, a quarter of a division's time.
inline V reciprocal(V a) {
  const V guess = _mm512_rcp14_ps(a);
  return fma(guess, fnma(a, guess, splat(1.0f)), guess);
}
inline V quotient(V a, V b) {
  const V r = reciprocal(b), q = mul(a, r);
  return fma(r, fnma(q, b, a), q);
}
inline V at_least(V limit, V a) { return _mm512_max_ps(limit, a); }  // NaN in a stays NaN
inline V at_most(V limit, V a) { return _mm512_min_ps(limit, a); }
inline V magnitude(V a) { return _mm512_abs_ps(a); }
inline V with_sign_of(V a, V sign) {  // a must not be negative
  return _mm512_or_ps(a, _mm512_and_ps(sign, splat(-0.0f)));
}
// a, but 0 where x is below the limit.
inline V zero_below(float limit, V x, V a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, splat(limit), _CMP_NLT_UQ), a);
}
// 2^n for the integer n that stands in the low bits of `rounded` (see activations.inl).
inline V exponent(V rounded) {
  const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(rounded), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3f800000)));
}

}  // namespace
