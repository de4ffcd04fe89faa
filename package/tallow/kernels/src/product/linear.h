// y[i, j] = Σ_p x[i, p] w[j, p] + bias[j]      x is small enough for L2, so that w is read once and nothing is packed
//
// The body of tl_linear_f32, _f16 and _bf16. The file that includes this defines WEIGHT, the element type of w, and
//   static inline vf widen(const WEIGHT *p)           LANES weights as float32
//   static inline float widen_one(WEIGHT w)
//
//   layout  x (m, k), bias (n,) contiguous, bias may be null; w (n, k), y (m, n) with contiguous rows, w_row and
//           y_row apart
//   align   none needed       length  any m, n; k = 0 gives the bias
//   alias   y overlaps nothing
//   error   ≤ (k / 8 + 8) ulp of Σ|x||w|
//
// The best number of rows of w to read at a time depends on where they are (one row of x; Node 20 on a Zen 5, GFLOP/s):
//                                     w in L2, (172, 64)    w from memory, (32000, 288)
//   one row of w, four accumulators          24                        19
//   two rows of w, two each                  30                         7
// Two streams within a page seem to disturb the prefetcher, so w is read strictly sequentially from memory.
#include "runtime/kernels.h"

enum { CACHED_BYTES = 256 * 1024 }; // a matrix up to this size is assumed to be in a cache

// A tile of y: `rows` rows of x times `cols` rows of w, each product summed in `chains` vectors. All are constants
// where this is inlined, so the sums stay in registers. `ahead` prefetches the next `cols` rows of w, which has no
// effect past the end.
static inline __attribute__((always_inline)) void tile(float *y, size_t y_row, const float *x, const WEIGHT *w,
                                                       ptrdiff_t w_row, const float *bias, size_t k, int rows, int cols,
                                                       int chains, int ahead) {
  enum { MOST = 4 };
  vf acc[MOST][MOST][MOST] = {0};
  size_t p = 0;
  for (; p + (size_t)chains * LANES <= k; p += (size_t)chains * LANES)
#pragma clang loop unroll(full)
    for (int u = 0; u < chains; u++) {
      if (ahead)
#pragma clang loop unroll(full)
        for (int j = 0; j < cols; j++) __builtin_prefetch(w + (cols + j) * w_row + (ptrdiff_t)p + u * LANES);
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
      y[(size_t)i * y_row + (size_t)j] = sum(total) + tail;
    }
}

// `rows` rows of x times all of w, `cols` rows of w at a time. Not inlined, so that the compiler keeps the loops as
// written.
#define ROWS_OF_X(NAME, rows, cols, chains)                                                                              \
  static __attribute__((noinline)) void NAME(float *y, const float *x, const WEIGHT *w, const float *bias, size_t k,     \
                                             size_t n, ptrdiff_t w_row, size_t y_row) {                                  \
    size_t j = 0;                                                                                                        \
    for (; j + cols <= n; j += cols)                                                                                     \
      tile(y + j, y_row, x, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, k, rows, cols, chains, 0);             \
    for (; j < n; j++)                                                                                                   \
      tile(y + j, y_row, x, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, k, rows, 1, chains, 0);                \
  }

ROWS_OF_X(one_row_cached, 1, 2, 2)
ROWS_OF_X(one_row, 1, 1, 4)
ROWS_OF_X(two_rows, 2, 1, 4)
ROWS_OF_X(three_rows, 3, 1, 2)
ROWS_OF_X(four_rows, 4, 1, 2)

// For five rows of x and more: four rows of w stay in L1 while x is read three rows at a time, the last ones by two.
// Twelve sums, a row of w and three of x take sixteen registers. GFLOP/s of one core of a Zen 4, and of OpenBLAS on it:
//                     16 rows    64 rows    128 rows
//   w (1536, 384)      48, 28     76, 63     80, 81         without prefetching 36 instead of 48
enum { ROWS = 3, COLS = 4 };

static inline __attribute__((always_inline)) void all_rows(float *y, size_t y_row, const float *x, const WEIGHT *w,
                                                           ptrdiff_t w_row, const float *bias, size_t m, size_t k,
                                                           int cols) {
  size_t i = ROWS, by_three = m % ROWS == 1 ? m - 4 : m - m % ROWS;
  tile(y, y_row, x, w, w_row, bias, k, ROWS, cols, 1, 1);
  for (; i < by_three; i += ROWS) tile(y + i * y_row, y_row, x + i * k, w, w_row, bias, k, ROWS, cols, 1, 0);
  for (; i < m; i += 2) tile(y + i * y_row, y_row, x + i * k, w, w_row, bias, k, 2, cols, 1, 0);
}

static __attribute__((noinline)) void many_rows(float *y, const float *x, const WEIGHT *w, const float *bias, size_t m,
                                                size_t k, size_t n, ptrdiff_t w_row, size_t y_row) {
  size_t j = 0;
  for (; j + COLS <= n; j += COLS, w += COLS * w_row) all_rows(y + j, y_row, x, w, w_row, bias ? bias + j : 0, m, k, COLS);
  for (; j < n; j++, w += w_row) all_rows(y + j, y_row, x, w, w_row, bias ? bias + j : 0, m, k, 1);
}

static inline void linear(float *y, const float *x, const WEIGHT *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row, size_t y_row) {
  // By all columns of y, not by those of this call: parts of a product are computed as the whole.
  int cached = y_row * k * sizeof(WEIGHT) <= CACHED_BYTES;
  if (m > 4) {
    many_rows(y, x, w, bias, m, k, n, w_row, y_row);
    return;
  }
  if (m == 4) four_rows(y, x, w, bias, k, n, w_row, y_row);
  if (m == 3) three_rows(y, x, w, bias, k, n, w_row, y_row);
  if (m == 2) two_rows(y, x, w, bias, k, n, w_row, y_row);
  if (m == 1) (cached ? one_row_cached : one_row)(y, x, w, bias, k, n, w_row, y_row);
}
