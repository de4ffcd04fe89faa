// tl_silu_f32     y = x / (1 + exp(-x))
// tl_sigmoid_f32  y = 1 / (1 + exp(-x))
//   layout  x, y (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   y may be x; any other overlap is undefined
//   error   ≤ 5e-7 relative to float64 if the result is not subnormal; NaN stays NaN
#include "runtime/vec.h"

static inline vf quotient(vf x, vi of_x) { return select(of_x, x, splat(1.0f)) / (splat(1.0f) + exp(-x)); }

// One loop for both: `of_x` is -1 for silu and 0 for sigmoid.
__attribute__((noinline)) static void quotients(float *y, const float *x, size_t n, int32_t of_x) {
  vi mask = (vi){0} + of_x;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, quotient(load(x + i), mask));
  store_part(y + i, n - i, quotient(load_part(x + i, n - i, 0.0f), mask));
}

EXPORT void tl_silu_f32(float *y, const float *x, size_t n) { quotients(y, x, n, -1); }

EXPORT void tl_sigmoid_f32(float *y, const float *x, size_t n) { quotients(y, x, n, 0); }
