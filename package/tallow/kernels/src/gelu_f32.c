// tl_gelu_f32       y = x Φ(x), Φ the normal distribution function                          GELU, arXiv:1606.08415
// tl_gelu_tanh_f32  y = x / (1 + exp(-2u)),  u = √(2/π) (x + 0.044715 x³): its tanh approximation, as 0.5 x (1 + tanh u)
//   layout  x, y (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   y may be x; any other overlap is undefined
//   special gelu(+inf) = +inf, gelu(-inf) = NaN as in PyTorch; NaN stays NaN
//   error   ≤ 4e-7 |x| relative to float64; for x < 0 also ≤ (1 + x²) 1e-6 relative to the result itself: the tail of Φ is
//           computed as such, never as 1 + erf
#include "vec.h"

// Φ(-t) = exp(-t²/2) P(s), s = 1 / (1 + 0.45 t), t ≥ 0: P fitted to erfc(t/√2)/2 · exp(t²/2) by weighted least squares in
// s, relative error 4e-8 in exact arithmetic.
static inline vf tail(vf t) {
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
  return exp(t * t * splat(-0.5f)) * p;
}

static inline vf gelu(vf x) {
  vf t = select(x < splat(0.0f), -x, x);
  t = select(t > splat(16.0f), splat(16.0f), t); // Φ(-16) is 0 here, and inf * 0 must not meet
  vf q = tail(t);
  return select(x < splat(0.0f), x * q, x - t * q);
}

static inline vf gelu_tanh(vf x) {
  vf minus_2u = x * fma(x * x, splat(-0.0713548163f), splat(-1.5957691216f));
  return x / (splat(1.0f) + exp(minus_2u));
}

EXPORT void tl_gelu_f32(float *y, const float *x, size_t n) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, gelu(load(x + i)));
  store_part(y + i, n - i, gelu(load_part(x + i, n - i, 0.0f)));
}

EXPORT void tl_gelu_tanh_f32(float *y, const float *x, size_t n) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, gelu_tanh(load(x + i)));
  store_part(y + i, n - i, gelu_tanh(load_part(x + i, n - i, 0.0f)));
}
