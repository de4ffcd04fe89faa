// y = x @ wᵀ + bias with bfloat16 weights, each the upper half of a float32; contract in linear.h. NaN and infinities
// are kept.
#define WEIGHT uint16_t
#include "vec.h"

static inline vf widen(const uint16_t *p) { return (vf)(load_u16(p) << 16); }
static inline float widen_one(uint16_t w) {
  union { uint32_t bits; float value; } as = {(uint32_t)w << 16};
  return as.value;
}

#include "linear.h"

void tl_widen_bf16(float *y, const uint16_t *x, size_t n) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, widen(x + i));
  for (; i < n; i++) y[i] = widen_one(x[i]);
}

void tl_linear_bf16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                    ptrdiff_t w_row, size_t y_row) {
  linear(y, x, w, bias, m, k, n, w_row, y_row);
}
