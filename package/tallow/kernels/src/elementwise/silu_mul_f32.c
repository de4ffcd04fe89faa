// y = a / (1 + exp(-a)) * b            the gate of a Llama feed-forward layer
//   layout  a, b, y (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   y may be a or b; any other overlap is undefined
//   error   ≤ 6e-7 relative to float64 if the result is not subnormal; NaN stays NaN
#include "runtime/kernels.h"

static inline vf silu_mul(vf a, vf b) { return a / (splat(1.0f) + exp(-a)) * b; }

void tl_silu_mul_f32(float *y, const float *a, const float *b, size_t n) {
  size_t i = 0, rest = n % LANES;
  for (; i + LANES <= n; i += LANES) store(y + i, silu_mul(load(a + i), load(b + i)));
  store_part(y + i, rest, silu_mul(load_part(a + i, rest, 0.0f), load_part(b + i, rest, 0.0f)));
}
