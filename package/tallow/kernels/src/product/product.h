// c = a @ b + plus    (m, k) @ (k, n) -> (m, n), float32: a product within another kernel; see product.c

#ifndef TALLOW_PRODUCT_H
#define TALLOW_PRODUCT_H

#include "runtime/vec.h"

// Return the best distance between rows of n floats: never a multiple of 4 KiB, where rows would compete for L1 sets.
static inline size_t row_of(size_t n) { return rounded_up(n, 16) + 16; }

void product_plus(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, size_t b_row,
                  size_t m, size_t k, size_t n, const float *plus, size_t plus_row);

// c = or += a @ b
static inline void product(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                           size_t b_row, size_t m, size_t k, size_t n, int accumulate) {
  product_plus(c, c_row, a, a_row, a_col, b, b_row, m, k, n, accumulate ? c : 0, c_row);
}

#endif
