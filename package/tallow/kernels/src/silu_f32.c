// y = x / (1 + exp(-x))
//   layout  x, y (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   y may be x; any other overlap is undefined
//   error   ≤ 5e-7 relative to float64 if the result is not subnormal; NaN stays NaN
#include "vec.h"

static inline vf silu(vf x) { return x / (splat(1.0f) + exp(-x)); }

EXPORT void tl_silu_f32(float *y, const float *x, size_t n) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, silu(load(x + i)));
  store_part(y + i, n - i, silu(load_part(x + i, n - i, 0.0f)));
}
