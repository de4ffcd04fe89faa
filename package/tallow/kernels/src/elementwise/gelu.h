// gelu(x) = x Φ(x), Φ the normal distribution function, and its tanh approximation: errors in gelu_f32.c.   arXiv:1606.08415

#ifndef TALLOW_GELU_H
#define TALLOW_GELU_H

#include "runtime/vec.h"

// Φ(-t) = 2^P(t), t ≥ 0: P fitted to log2 Φ(-t) by minimax, relative error of the power 4e-7 to 6e-7 (1 + t²) in exact
// arithmetic until it is below 2^-126; from there on P falls, to -inf, and the power is 0.
static inline vf tail(vf t) {
  static const float c[] = {-1.0f,           -1.15112364f,    -0.459056944f,   -0.0528963655f, 7.54044438e-3f,
                            -4.22078854e-4f, -1.03916296e-4f, 3.26758491e-5f,  -4.64629738e-6f, 3.98588071e-7f,
                            -2.1013399e-8f,  6.28214369e-10f, -8.16776681e-12f};
  if (REGISTERS > 1) return power_of_2(polynomial(c, 12, t));
  vf t2 = t * t; // two sums, so that an addition waits for half of the others
  return power_of_2(fma(polynomial(c + 6, 6, t), t2 * t2 * t2, polynomial(c, 5, t)));
}

// Φ(x), but for NaN.
static inline vf normal(vf x) {
  vf q = tail((vf)((vi)x & INT32_MAX));
  return select(x < splat(0.0f), q, splat(1.0f) - q);
}

static inline vf gelu(vf x) { return x * normal(x); }

static inline vf gelu_tanh(vf x) {
  vf minus_2u = x * fma(x * x, splat(-0.0713548163f), splat(-1.5957691216f));
  return x / (splat(1.0f) + exp(minus_2u));
}

#endif
