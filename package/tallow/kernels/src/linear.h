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
//
// How many rows of w to take at a time depends on where they come from (one row of x; Node 20 on a Zen 5, GFLOP/s):
//                                     w in L2, (172, 64)    w from memory, (32000, 288)
//   one row of w, four accumulators          24                        19
//   two rows of w, two each                  30                         7
// Two streams within a page seem to upset the prefetcher, so what comes from memory is read strictly front to back.
#include "kernels.h"

enum { CACHED_BYTES = 256 * 1024 }; // a matrix up to this size is taken to be in a cache

// A tile of y: `rows` rows of x times `cols` rows of w, each product summed in `chains` vectors. All three are constants
// where this is inlined, so the sums stay in registers.
static inline __attribute__((always_inline)) void tile(float *y, size_t n, const float *x, const WEIGHT *w, ptrdiff_t w_row,
                                                       const float *bias, size_t k, int rows, int cols, int chains) {
  enum { MOST = 4 };
  vf acc[MOST][MOST][MOST] = {0};
  size_t p = 0;
  for (; p + (size_t)chains * LANES <= k; p += (size_t)chains * LANES)
#pragma clang loop unroll(full)
    for (int u = 0; u < chains; u++) {
      vf row[MOST];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) row[i] = load(x + (size_t)i * k + p + (size_t)u * LANES);
#pragma clang loop unroll(full)
      for (int j = 0; j < cols; j++) {
        vf weight = widen(w + j * w_row + (ptrdiff_t)p + u * LANES);
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++) acc[i][j][u] = fma(row[i], weight, acc[i][j][u]);
      }
    }
  if (chains > 1)
    for (; p + LANES <= k; p += LANES)
#pragma clang loop unroll(full)
      for (int j = 0; j < cols; j++)
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++)
          acc[i][j][0] = fma(load(x + (size_t)i * k + p), widen(w + j * w_row + (ptrdiff_t)p), acc[i][j][0]);
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int j = 0; j < cols; j++) {
      vf total = acc[i][j][0];
#pragma clang loop unroll(full)
      for (int u = 1; u < chains; u++) total += acc[i][j][u];
      float tail = bias ? bias[j] : 0.0f;
      for (size_t t = p; t < k; t++) tail += x[(size_t)i * k + t] * widen_one(w[j * w_row + (ptrdiff_t)t]);
      y[(size_t)i * n + (size_t)j] = sum(total) + tail;
    }
}

// `rows` rows of x times all of w, `cols` rows of w at a time. Not inlined: the compiler keeps the loops as they are written.
#define ROWS_OF_X(NAME, rows, cols, chains)                                                                              \
  static __attribute__((noinline)) void NAME(float *y, const float *x, const WEIGHT *w, const float *bias, size_t k,     \
                                             size_t n, ptrdiff_t w_row) {                                                \
    size_t j = 0;                                                                                                        \
    for (; j + cols <= n; j += cols)                                                                                     \
      tile(y + j, n, x, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, k, rows, cols, chains);                    \
    for (; j < n; j++) tile(y + j, n, x, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, k, rows, 1, chains);      \
  }

ROWS_OF_X(one_row_cached, 1, 2, 2)
ROWS_OF_X(one_row, 1, 1, 4)
ROWS_OF_X(two_rows, 2, 1, 4)
ROWS_OF_X(three_rows, 3, 1, 2)
ROWS_OF_X(four_rows, 4, 1, 2)

static inline void linear(float *y, const float *x, const WEIGHT *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row) {
  int cached = n * k * sizeof(WEIGHT) <= CACHED_BYTES;
  for (; m >= 4; m -= 4, x += 4 * k, y += 4 * n) four_rows(y, x, w, bias, k, n, w_row);
  if (m == 3) three_rows(y, x, w, bias, k, n, w_row);
  if (m == 2) two_rows(y, x, w, bias, k, n, w_row);
  if (m == 1) (cached ? one_row_cached : one_row)(y, x, w, bias, k, n, w_row);
}
