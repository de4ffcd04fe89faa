// tl_add_f32, tl_sub_f32, tl_mul_f32, tl_div_f32   y[i] = a[i] + b[i], and so on; with b null a number instead of b[i]
// tl_clamp_min_f32            y[i] = the larger of a[i] and the number; tl_clamp_max_f32 the smaller one; NaN in a stays NaN
// tl_leaky_relu_backward_f32  y[i] = a[i] where b[i] > 0, and the number, the slope, times a[i] elsewhere; with NaN as the slope 0
//                             elsewhere, the gradient of relu. With b = a this is leaky_relu itself
//   layout  all (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   the result may be an operand; any other overlap is undefined
//   special IEEE 754: NaN stays NaN
//   error   each result is rounded once: the same bits as NumPy's, but the sign of a zero from the larger or smaller
#include "runtime/vec.h"

#define RESULT(NAME, EXPRESSION)                                                                       \
  EXPORT void NAME(float *y, const float *a, const float *b, size_t n, float number);                  \
  void NAME(float *y, const float *a, const float *b, size_t n, float number) {                        \
    size_t i = 0;                                                                                      \
    vf q = splat(number);                                                                              \
    (void)q;                                                                                           \
    for (; i + LANES <= n; i += LANES) {                                                               \
      vf p = load(a + i);                                                                              \
      if (b) q = load(b + i);                                                                          \
      store(y + i, EXPRESSION);                                                                        \
    }                                                                                                  \
    if (i < n) {                                                                                       \
      vf p = load_part(a + i, n - i, 1.0f);                                                            \
      if (b) q = load_part(b + i, n - i, 1.0f);                                                        \
      store_part(y + i, n - i, EXPRESSION);                                                            \
    }                                                                                                  \
  }

RESULT(tl_add_f32, p + q)
RESULT(tl_sub_f32, p - q)
RESULT(tl_mul_f32, p *q)
RESULT(tl_div_f32, p / q)
RESULT(tl_clamp_min_f32, or_nan(select(p < q, q, p), p))
RESULT(tl_clamp_max_f32, or_nan(select(p > q, q, p), p))
RESULT(tl_leaky_relu_backward_f32, select(q > splat(0.0f), p, (vf)((vi)(p * splat(number)) & ((vi){0} - (number == number)))))
