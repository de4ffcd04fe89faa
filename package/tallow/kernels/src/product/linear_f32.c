// y = x @ wᵀ + bias with float32 weights; contract in linear.h.
#define WEIGHT float
#include "runtime/vec.h"

static inline vf widen(const float *p) { return load(p); }
static inline float widen_one(float w) { return w; }

#include "product/linear.h"

void tl_linear_f32(float *y, const float *x, const float *w, const float *bias, size_t m, size_t k, size_t n,
                   ptrdiff_t w_row, size_t y_row) {
  linear(y, x, w, bias, m, k, n, w_row, y_row);
}
