// c = or += a @ b    (m, k) @ (k, n) -> (m, n), float32: a product within another kernel, of operands in a cache
//   layout  a[i, p] at a + i * a_row + p * a_col, any strides; b and c with contiguous rows, b_row and c_row apart
//   length  n a multiple of LANES: the caller pads b with zeros; any m; k = 0 gives zeros, or leaves c unchanged
//   align   none needed       alias   c overlaps nothing
//
// Nothing is packed here: b is read by panels of two vectors, which stay in L1 for all rows of a, and each element of a
// is broadcast to a vector as it is read. That is the tile of matmul_f32.c; its comments give the reasons.

#ifndef TALLOW_PRODUCT_H
#define TALLOW_PRODUCT_H

#include "vec.h"

// Return the best distance between rows of n floats: never a multiple of 4 KiB, where rows would compete for L1 sets.
static inline size_t row_of(size_t n) { return rounded_up(n, 16) + 16; }

static inline __attribute__((always_inline)) void product_tile(float *c, size_t c_row, const float *a, ptrdiff_t a_row,
                                                               ptrdiff_t a_col, const float *b, size_t b_row, size_t k,
                                                               int accumulate, int rows, int vectors) {
  enum { MOST_ROWS = 8, MOST_VECTORS = 2 };
  vf acc[MOST_ROWS][MOST_VECTORS] = {0};
  for (; k--; a += a_col, b += b_row)
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) acc[i][v] = fma(splat(a[i * a_row]), load(b + v * LANES), acc[i][v]);
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      float *out = c + (size_t)i * c_row + v * LANES;
      store(out, accumulate ? load(out) + acc[i][v] : acc[i][v]);
    }
}

#define PRODUCT_TILE(NAME, rows, vectors)                                                                                \
  static __attribute__((noinline)) void NAME(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,   \
                                             const float *b, size_t b_row, size_t k, int accumulate) {                   \
    product_tile(c, c_row, a, a_row, a_col, b, b_row, k, accumulate, rows, vectors);                                     \
  }

PRODUCT_TILE(tile_4x2, 4, 2)
PRODUCT_TILE(tile_1x2, 1, 2)
PRODUCT_TILE(tile_8x1, 8, 1)
PRODUCT_TILE(tile_1x1, 1, 1)

// Add one block of k, short enough for a panel of b to stay in L1.
static inline void product_block(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                                 size_t b_row, size_t m, size_t k, size_t n, int accumulate) {
  size_t j = 0;
  for (; j + 2 * LANES <= n; j += 2 * LANES) {
    size_t i = 0;
    for (; i + 4 <= m; i += 4)
      tile_4x2(c + i * c_row + j, c_row, a + (ptrdiff_t)i * a_row, a_row, a_col, b + j, b_row, k, accumulate);
    for (; i < m; i++)
      tile_1x2(c + i * c_row + j, c_row, a + (ptrdiff_t)i * a_row, a_row, a_col, b + j, b_row, k, accumulate);
  }
  if (j < n) {
    size_t i = 0;
    for (; i + 8 <= m; i += 8)
      tile_8x1(c + i * c_row + j, c_row, a + (ptrdiff_t)i * a_row, a_row, a_col, b + j, b_row, k, accumulate);
    for (; i < m; i++)
      tile_1x1(c + i * c_row + j, c_row, a + (ptrdiff_t)i * a_row, a_row, a_col, b + j, b_row, k, accumulate);
  }
}

static void product(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, size_t b_row,
                    size_t m, size_t k, size_t n, int accumulate) {
  enum { BLOCK = 256 };
  if (k == 0 && !accumulate) product_block(c, c_row, a, a_row, a_col, b, b_row, m, 0, n, 0);
  for (size_t p = 0; p < k; p += BLOCK)
    product_block(c, c_row, a + (ptrdiff_t)p * a_col, a_row, a_col, b + p * b_row, b_row, m, smaller(BLOCK, k - p), n,
                  accumulate || p > 0);
}

#endif
