// tl_add_f32, tl_sub_f32, tl_mul_f32, tl_div_f32   y[i] = a[i] + b[i], and so on; with b null a number instead of b[i]
// tl_lerp_f32                 y[i] = a[i] + number (b[i] - a[i])
// tl_clamp_min_f32            y[i] = the larger of a[i] and the number; tl_clamp_max_f32 the smaller one; NaN in a stays NaN
// tl_leaky_relu_backward_f32  y[i] = a[i] where b[i] > 0, and the number, the slope, times a[i] elsewhere; with NaN as the slope 0
//                             elsewhere, the gradient of relu. With b = a this is leaky_relu itself
//   layout  y and a (rows, n) contiguous; b has by_row elements for each row: n, 0 for a row (n,) that all share, or 1 for a
//           column (rows,), whose elements are for all of their row
//   align   none needed       length  any rows, n ≥ 0
//   alias   the result may be an operand; any other overlap is undefined
//   special IEEE 754: NaN stays NaN
//   error   each result is rounded once: the same bits as NumPy's, but the sign of a zero from the larger or smaller; lerp
//           rounds two or three times
#include "runtime/vec.h"

#define RESULT(NAME, EXPRESSION)                                                                       \
  static inline __attribute__((always_inline)) vf NAME##_of(vf p, vf q, float number) {                \
    (void)q, (void)number;                                                                             \
    return EXPRESSION;                                                                                 \
  }                                                                                                    \
  static inline __attribute__((always_inline)) void NAME##_part(float *y, const float *a, const float *b, size_t n,       \
                                                                float number) {                        \
    store_part(y, n, NAME##_of(load_part(a, n, 1.0f), b ? load_part(b, n, 1.0f) : splat(number), number));                \
  }                                                                                                    \
  static void NAME##_row(float *y, const float *a, const float *b, size_t n, float number) {           \
    size_t i = smaller(before_line(y), n);                                                             \
    vf q = splat(number);                                                                              \
    if (i) NAME##_part(y, a, b, i, number);                                                            \
    for (; i + LANES <= n; i += LANES) {                                                               \
      if (b) q = load(b + i);                                                                          \
      store(y + i, NAME##_of(load(a + i), q, number));                                                 \
    }                                                                                                  \
    if (i < n) NAME##_part(y + i, a + i, b ? b + i : 0, n - i, number);                                \
  }                                                                                                    \
  EXPORT void NAME(float *y, const float *a, const float *b, size_t rows, size_t n, size_t by_row, float number);         \
  void NAME(float *y, const float *a, const float *b, size_t rows, size_t n, size_t by_row, float number) {               \
    if (by_row == n) n *= rows, rows = 1, by_row = 0;                                                  \
    for (size_t r = 0; r < rows; r++, y += n, a += n)                                                  \
      NAME##_row(y, a, by_row ? 0 : b, n, by_row ? b[r] : number);                                     \
  }

RESULT(tl_add_f32, p + q)
RESULT(tl_sub_f32, p - q)
RESULT(tl_mul_f32, p *q)
RESULT(tl_div_f32, p / q)
RESULT(tl_lerp_f32, fma(q - p, splat(number), p))
RESULT(tl_clamp_min_f32, or_nan(select(p < q, q, p), p))
RESULT(tl_clamp_max_f32, or_nan(select(p > q, q, p), p))
RESULT(tl_leaky_relu_backward_f32, select(q > splat(0.0f), p, (vf)((vi)(p * splat(number)) & ((vi){0} - (number == number)))))
