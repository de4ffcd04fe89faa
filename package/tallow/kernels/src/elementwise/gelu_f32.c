// tl_gelu_f32       y = x Φ(x), Φ the normal distribution function                          GELU, arXiv:1606.08415
// tl_gelu_tanh_f32  y = x / (1 + exp(-2u)),  u = √(2/π) (x + 0.044715 x³): its tanh approximation, as 0.5 x (1 + tanh u)
// tl_erf_f32        y = 2/√π ∫ exp(-t²) dt from 0 to x; not in WASM, whose libraries have no room for it
// tl_gelu_backward_f32, tl_gelu_tanh_backward_f32   dx = g dy/dx
//   layout  x, y, g, dx (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   y may be x, and dx may be x or g; any other overlap is undefined
//   special gelu(+inf) = +inf, gelu(-inf) = NaN as in PyTorch; NaN stays NaN
//   error   ≤ 4e-7 |x| relative to float64; for -12 ≤ x < 0 also ≤ (1 + x²) 1e-6 relative to the result itself: the tail
//           of Φ is computed directly, never as 1 + erf, and is 0 below 1.2e-38. dx ≤ 1e-6 |g|, tanh 4e-6 |g|; erf ≤ 1.5 ulp
#define REGISTERS 8
#include "elementwise/gelu.h"

// Φ(x) + x φ(x): by its two terms, which keep the relative accuracy of the tail
static inline vf gelu_slope(vf x) {
  vf t = clamp(x, splat(-16.0f), splat(16.0f)); // φ(16) is 0 in float32
  return or_nan(fma(t * splat(0.39894228f), exp_below_1(t * t * splat(-0.5f)), normal(x)), x);
}

// s (1 + 2 x u' (1 - s)),  s = 1 / (1 + exp(-2u))
static inline vf gelu_tanh_slope(vf x) {
  vf t = clamp(x, splat(-16.0f), splat(16.0f)), square = t * t;
  vf s = splat(1.0f) / (splat(1.0f) + exp(t * fma(square, splat(-0.0713548163f), splat(-1.5957691216f))));
  vf inner_slope = t * fma(square, splat(0.2140644488f), splat(1.5957691216f));
  return or_nan(s * fma(inner_slope, splat(1.0f) - s, splat(1.0f)), x);
}

#if !defined __wasm__
// Below 1 x + x P(x²), and otherwise ±(1 - 2^Q(|x|)): fitted by minimax, relative errors 1e-9 in exact arithmetic. From 3.95
// on the result is 1 in float32.
static inline vf erf(vf x) {
  static const float p[] = {0.128379166f,    -0.376126258f,    0.112835852f,   -0.0268538121f,
                            0.00518832792f, -0.000801019557f, 7.85386768e-5f};
  static const float q[] = {-0.000492723213f, -1.62604595f,   -0.920648446f,  -0.148751554f,
                            0.0315056441f,    -0.00425256671f, 0.000268887828f};
  vi sign = (vi)x & INT32_MIN;
  vf t = (vf)((vi)x & INT32_MAX), near = fma(x, polynomial(p, 6, x * x), x);
  vf far = splat(1.0f) - power_of_2(polynomial(q, 6, select(t > splat(3.95f), splat(3.95f), t)));
  return select(t >= splat(1.0f), (vf)((vi)far | sign), near); // near for NaN
}
#endif

// One loop also for the last elements: most of the code is in `EXPRESSION`.
#define RESULT(NAME, EXPRESSION)                                                                  \
  EXPORT void NAME(float *y, const float *x, size_t n) {                                          \
    for (size_t i = 0; i < n; i += LANES) store_up_to(y + i, n - i, EXPRESSION(load_up_to(x + i, n - i))); \
  }
#define GRADIENT(NAME, SLOPE)                                                                     \
  EXPORT void NAME(float *dx, const float *g, const float *x, size_t n) {                         \
    for (size_t i = 0; i < n; i += LANES)                                                         \
      store_up_to(dx + i, n - i, load_up_to(g + i, n - i) * SLOPE(load_up_to(x + i, n - i)));     \
  }

RESULT(tl_gelu_f32, gelu)
RESULT(tl_gelu_tanh_f32, gelu_tanh)
GRADIENT(tl_gelu_backward_f32, gelu_slope)
GRADIENT(tl_gelu_tanh_backward_f32, gelu_tanh_slope)
#if !defined __wasm__
RESULT(tl_erf_f32, erf)
#endif
