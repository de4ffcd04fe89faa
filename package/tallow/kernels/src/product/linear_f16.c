// y = x @ wᵀ + bias with IEEE 754 float16 weights; contract in linear.h.
#define WEIGHT uint16_t
#include "elementwise/halves.h"

static inline vf widen(const uint16_t *p) { return widen_f16(p); }
static inline float widen_one(uint16_t w) { return widen_one_f16(w); }

#include "product/linear.h"

void tl_linear_f16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                   ptrdiff_t w_row, size_t y_row) {
  linear(y, x, w, bias, m, k, n, w_row, y_row);
}
