// Four floats in the compiler's own vectors: any machine, no fused multiply-add.
#pragma once

#include <cstdint>
#include <cstring>

namespace {

using V = float __attribute__((vector_size(16)));
using VInt = int32_t __attribute__((vector_size(16)));
constexpr int kLanes = 4;
constexpr int kTileRows = 2;  // 2 x 4 accumulators, 4 weights and 2 broadcasts in 16 registers

inline V splat(float a) { return V{a, a, a, a}; }
inline V load(const float* p) {
  V a;
  std::memcpy(&a, p, sizeof(a));
  return a;
}
inline void store(float* p, V a) { std::memcpy(p, &a, sizeof(a)); }
inline V load_first(const float* p, int n) {
  V a = splat(0.0f);
  for (int i = 0; i < n; ++i) a[i] = p[i];
  return a;
}
inline void store_first(float* p, V a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a[i];
}
inline VInt bits_of(V a) {
  VInt b;
  std::memcpy(&b, &a, sizeof(b));
  return b;
}
inline V float_of(VInt a) {
  V b;
  std::memcpy(&b, &a, sizeof(b));
  return b;
}
inline V add(V a, V b) { return a + b; }
inline V sub(V a, V b) { return a - b; }
inline V mul(V a, V b) { return a * b; }
inline V reciprocal(V a) { return splat(1.0f) / a; }
inline V quotient(V a, V b) { return a / b; }
inline V fma(V a, V b, V c) { return a * b + c; }
inline V fnma(V a, V b, V c) { return c - a * b; }
inline V at_least(V limit, V a) { return a < limit ? limit : a; }  // NaN in a stays NaN
inline V at_most(V limit, V a) { return a > limit ? limit : a; }
inline V magnitude(V a) { return float_of(bits_of(a) & 0x7fffffff); }
inline V with_sign_of(V a, V sign) {  // a must not be negative
  return float_of(bits_of(a) | (bits_of(sign) & INT32_MIN));
}
// a, but 0 where x is below the limit.
inline V zero_below(float limit, V x, V a) { return x < splat(limit) ? splat(0.0f) : a; }
// 2^n for the integer n that stands in the low bits of `rounded` (see activations.inl).
inline V exponent(V rounded) {
  using VUnsigned = uint32_t __attribute__((vector_size(16)));
  VUnsigned bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits = (bits << 23) + 0x3f800000u;
  V result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

}  // namespace
