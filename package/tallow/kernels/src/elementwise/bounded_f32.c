// tl_clamp_f32               y = min(max(x, bounds[0]), bounds[1])
// tl_clamp_backward_f32      y = g where bounds[0] < x < bounds[1], 0 elsewhere: the gradient of hardtanh
// tl_hardswish_f32           y = x · min(max(x + 3, 0), 6) / 6
// tl_hardswish_backward_f32  y = g times the derivative of hardswish at x: 0 up to -3, 1 from 3 on, x / 3 + 1/2 between
// tl_huber_f32               y = d² / 2 where |d| < delta, else delta (|d| - delta / 2), with d = x - t
//   layout  all (n,) contiguous, bounds (2,)      align  none needed       length  any n ≥ 0
//   alias   the result may be an operand; any other overlap is undefined
//   special NaN stays NaN; the gradient of hardtanh is NaN only where g is, and that of hardswish is 0 where x ≤ -3
//   error   clamp none; hardswish and huber ≤ 3 ulp, huber of |d| + delta
#include "runtime/vec.h"

// Both bounds of hardswish are in its formula.
#define RESULT(NAME, EXPRESSION)                                                                               \
  static inline __attribute__((always_inline)) vf NAME##_of(vf p, vf x, vf low, vf high) {                     \
    (void)p, (void)low, (void)high;                                                                            \
    return EXPRESSION;                                                                                         \
  }                                                                                                            \
  static void NAME##_all(float *y, const float *g, const float *x, size_t n, float least, float most) {        \
    vf low = splat(least), high = splat(most);                                                                 \
    size_t i = smaller(before_line(y), n);                                                                     \
    if (i) store_part(y, i, NAME##_of(load_part(g, i, 0.0f), load_part(x, i, 0.0f), low, high));               \
    for (; i + LANES <= n; i += LANES) store(y + i, NAME##_of(load(g + i), load(x + i), low, high));           \
    if (i < n) store_part(y + i, n - i, NAME##_of(load_part(g + i, n - i, 0.0f), load_part(x + i, n - i, 0.0f), low, high)); \
  }

static inline vf within(vf x, vf low, vf high) {
  vf y = select(x < low, low, x);
  return or_nan(select(y > high, high, y), x);
}

static inline vf hardswish_gradient(vf g, vf x) {
  vf y = g * select(x >= splat(3.0f), splat(1.0f), fma(x, splat(1.0f / 3.0f), splat(0.5f)));
  return select(x <= splat(-3.0f), splat(0.0f), y);
}

// One formula for both: |d| is bent, or delta is.
static inline vf huber_error(vf d, vf delta) {
  vf size = select(d < splat(0.0f), -d, d), bent = or_nan(select(size > delta, delta, size), size);
  return (size - bent * splat(0.5f)) * bent;
}

RESULT(clamp, within(x, low, high))
RESULT(clamp_backward, select((x > low) & (x < high), p, splat(0.0f)))
RESULT(hardswish, x *within(x + splat(3.0f), splat(0.0f), splat(6.0f)) * splat(1.0f / 6.0f))
RESULT(hardswish_backward, hardswish_gradient(p, x))
RESULT(huber, huber_error(p - x, low))

EXPORT void tl_clamp_f32(float *y, const float *x, const float *bounds, size_t n) { clamp_all(y, x, x, n, bounds[0], bounds[1]); }

EXPORT void tl_clamp_backward_f32(float *y, const float *g, const float *x, const float *bounds, size_t n) {
  clamp_backward_all(y, g, x, n, bounds[0], bounds[1]);
}

EXPORT void tl_hardswish_f32(float *y, const float *x, size_t n) { hardswish_all(y, x, x, n, 0.0f, 0.0f); }

EXPORT void tl_hardswish_backward_f32(float *y, const float *g, const float *x, size_t n) {
  hardswish_backward_all(y, g, x, n, 0.0f, 0.0f);
}

EXPORT void tl_huber_f32(float *y, const float *x, const float *t, size_t n, float delta) { huber_all(y, x, t, n, delta, delta); }
