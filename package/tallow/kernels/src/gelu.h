// gelu(x) = x Φ(x), Φ the normal distribution function, and its tanh approximation: errors in gelu_f32.c.   arXiv:1606.08415

#ifndef TALLOW_GELU_H
#define TALLOW_GELU_H

#include "vec.h"

// Φ(-t) = exp(-t²/2) P(s), s = 1 / (1 + 0.45 t), t ≥ 0: P fitted to erfc(t/√2)/2 · exp(t²/2) by weighted least squares in
// s, relative error 4e-8 in exact arithmetic.
static inline vf tail(vf t, vf bell) { // bell = exp(-t²/2)
  vf s = splat(1.0f) / fma(splat(0.45f), t, splat(1.0f));
  vf p = splat(0.03827958f);
  p = fma(p, s, splat(-0.22561999f));
  p = fma(p, s, splat(0.53751636f));
  p = fma(p, s, splat(-0.61148334f));
  p = fma(p, s, splat(0.26368400f));
  p = fma(p, s, splat(-0.021622838f));
  p = fma(p, s, splat(0.16254267f));
  p = fma(p, s, splat(0.17700067f));
  p = fma(p, s, splat(0.17970866f));
  p = fma(p, s, splat(-5.7785337e-6f));
  return bell * p;
}

static inline vf magnitude(vf x) {
  vf t = (vf)((vi)x & INT32_MAX);
  return select(t > splat(16.0f), splat(16.0f), t); // Φ(-16) is 0 in float32; avoids inf * 0
}

static inline vf gelu(vf x) {
  vf t = magnitude(x), q = tail(t, exp_below_1(t * t * splat(-0.5f)));
  return select(x < splat(0.0f), x * q, x - t * q);
}

static inline vf gelu_tanh(vf x) {
  vf minus_2u = x * fma(x * x, splat(-0.0713548163f), splat(-1.5957691216f));
  return x / (splat(1.0f) + exp(minus_2u));
}

#endif
