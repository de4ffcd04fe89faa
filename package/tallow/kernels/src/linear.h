// y[i, j] = Σ_p x[i, p] w[j, p] + bias[j]      few rows of x, so that w is read once and nothing is packed
//
// The body of tl_linear_f32, _f16 and _bf16. The file that includes this defines WEIGHT, the element type of w, and
//   static inline vf widen(const WEIGHT *p)           LANES weights as float32
//   static inline float widen_one(WEIGHT w)
//
//   layout  x (m, k), y (m, n), bias (n,) contiguous, bias may be null; w (n, k), rows contiguous, w_row elements apart
//   align   none needed       length  any m, n; k = 0 gives the bias
//   alias   y overlaps nothing
//   error   ≤ (k / 8 + 8) ulp of Σ|x||w|
#include "kernels.h"

enum { X_ROWS = 4, W_ROWS = 2 }; // the tile of y in registers; two rows of w keep the loads of memory and of x in balance

// A tile of y of `rows` rows and `cols` columns, both known where this is inlined.
static inline __attribute__((always_inline)) void dots(float *y, size_t n, const float *x, const WEIGHT *w, ptrdiff_t w_row,
                                                       const float *bias, size_t k, int rows, int cols) {
  vf acc[X_ROWS][W_ROWS][2] = {0};
  size_t p = 0;
  for (; p + 2 * LANES <= k; p += 2 * LANES)
#pragma clang loop unroll(full)
    for (int u = 0; u < 2; u++)
#pragma clang loop unroll(full)
      for (int j = 0; j < cols; j++) {
        vf weight = widen(w + (ptrdiff_t)p + j * w_row + u * LANES);
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++)
          acc[i][j][u] = fma(load(x + (size_t)i * k + p + (size_t)u * LANES), weight, acc[i][j][u]);
      }
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < cols; j++) {
      float tail = 0.0f;
      for (size_t t = p; t < k; t++) tail += x[(size_t)i * k + t] * widen_one(w[j * w_row + (ptrdiff_t)t]);
      y[(size_t)i * n + (size_t)j] = sum(acc[i][j][0] + acc[i][j][1]) + tail + (bias ? bias[j] : 0.0f);
    }
}

static inline __attribute__((always_inline)) void rows_of_x(float *y, const float *x, const WEIGHT *w, const float *bias,
                                                            size_t k, size_t n, ptrdiff_t w_row, int rows) {
  size_t j = 0;
  for (; j + W_ROWS <= n; j += W_ROWS)
    dots(y + j, n, x, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, k, rows, W_ROWS);
  for (; j < n; j++) dots(y + j, n, x, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, k, rows, 1);
}

static inline void linear(float *y, const float *x, const WEIGHT *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row) {
  for (; m >= X_ROWS; m -= X_ROWS, x += X_ROWS * k, y += X_ROWS * n) rows_of_x(y, x, w, bias, k, n, w_row, X_ROWS);
  if (m == 3) rows_of_x(y, x, w, bias, k, n, w_row, 3);
  if (m == 2) rows_of_x(y, x, w, bias, k, n, w_row, 2);
  if (m == 1) rows_of_x(y, x, w, bias, k, n, w_row, 1);
}
