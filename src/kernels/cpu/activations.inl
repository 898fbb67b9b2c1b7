// Sigmoid and tanh to about one unit in the last place, also near zero, where tanh(x) = x.
#pragma once

namespace {

struct Exponential {
  V scale;      // 2^n
  V minus_one;  // e^r - 1, so that e^x = scale * (1 + minus_one)
};

// x must be in [-80, 88].
inline Exponential exponential(V x) {
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const V magic = splat(12582912.0f);
  const V rounded = fma(x, splat(1.44269504f), magic);
  const V n = sub(rounded, magic);
  V r = fnma(n, splat(0.693145751953125f), x);  // ln 2 in two parts; the first product is exact
  r = fnma(n, splat(1.42860677e-6f), r);
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/2, minimax: relative error of e^r - 1 below 1.4e-8.
  V q = splat(0.001394649618305266f);
  q = fma(q, r, splat(0.00836661085486412f));
  q = fma(q, r, splat(0.04166628047823906f));
  q = fma(q, r, splat(0.1666654348373413f));
  q = fma(q, r, splat(0.5f));
  return {exponent(rounded), fma(mul(r, r), q, r)};
}

inline V sigmoid(V x) {
  // Exactly zero where float32 has no normal number for it: an input of 1e38 may multiply it.
  constexpr float kSmallest = -88.0f;
  const V y = at_most(splat(-kSmallest), at_least(splat(-80.0f), sub(splat(0.0f), x)));
  const Exponential e = exponential(y);
  return zero_below(kSmallest, x, reciprocal(add(splat(1.0f), fma(e.scale, e.minus_one, e.scale))));
}

inline V hyperbolic_tangent(V x) {
  // tanh|x| = -m / (2 + m) with m = e^(-2|x|) - 1, which loses nothing for small x.
  const V y = at_least(splat(-40.0f), mul(magnitude(x), splat(-2.0f)));
  const Exponential e = exponential(y);
  const V m = fma(e.scale, e.minus_one, sub(e.scale, splat(1.0f)));
  return with_sign_of(quotient(magnitude(m), add(splat(2.0f), m)), x);
}

}  // namespace
