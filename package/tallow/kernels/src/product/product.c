// product   c = a @ b + plus    (m, k) @ (k, n) -> (m, n), float32: of operands in a cache, within another kernel
//   plus    rows of n floats, plus_row apart: c itself, or a bias with plus_row 0; null for nothing
//   layout  a[i, p] at a + i * a_row + p * a_col, any strides; b and c with contiguous rows, b_row and c_row apart
//   length  n a multiple of LANES: the caller pads b with zeros; any m; k = 0 gives plus
//   align   none needed       alias   c overlaps nothing but plus
//   error   ≤ (k / 4 + 2) ulp of |plus| + Σ|a||b|; an element of c is computed in the same order wherever it is
//
// Nothing is packed here: b is read by panels of two vectors, which stay in L1 for all rows of a, and each element of a
// is broadcast to a vector as it is read. That is the tile of matmul_f32.c; its comments give the reasons.
#include "product/product.h"

#if defined __AVX512F__ || defined __aarch64__
enum { TALL = 8 }; // 16 sums of 32 registers, and a size that divides most matrices
#elif defined __AVX2__
enum { TALL = 6 }; // 12 sums, two vectors of b and one element of a: sixteen registers
#else
enum { TALL = 4 }; // engines keep only this many sums in registers
#endif
enum { BLOCK = (LANES == 16 ? 4096 : 3072) / LANES }; // rows of a panel of b, 24 KiB, or 32: those of a matrix of columns

static inline __attribute__((always_inline)) void product_tile(float *c, size_t c_row, const float *a, ptrdiff_t a_row,
                                                               ptrdiff_t a_col, const float *b, size_t b_row, size_t k,
                                                               const float *plus, size_t plus_row, int rows, int vectors) {
  vf acc[2 * TALL][2] = {0};
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
      store(out, plus ? load(plus + (size_t)i * plus_row + v * LANES) + acc[i][v] : acc[i][v]);
    }
}

typedef void tile(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, size_t b_row,
                  size_t k, const float *plus, size_t plus_row);

#define TILE(NAME, rows, vectors)                                                                                        \
  static __attribute__((noinline)) void NAME(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,   \
                                             const float *b, size_t b_row, size_t k, const float *plus, size_t plus_row) { \
    product_tile(c, c_row, a, a_row, a_col, b, b_row, k, plus, plus_row, rows, vectors);                                 \
  }
#define TILES(rows) TILE(tile_##rows##x1, rows, 1) TILE(tile_##rows##x2, rows, 2)

TILES(1) TILES(2) TILES(3) TILES(4)
#if defined __AVX2__ || defined __aarch64__
TILES(5) TILES(6)
#endif
#if defined __AVX512F__ || defined __aarch64__
TILES(7) TILES(8)
#endif
TILE(tile_of_one_vector, 2 * TALL, 1) // for as many independent sums as with two

static tile *tile_of(size_t rows, int vectors) {
#define CASE(n)                                                                                                          \
  case n:                                                                                                                \
    return vectors == 2 ? tile_##n##x2 : tile_##n##x1;
  switch (rows) {
    CASE(1) CASE(2) CASE(3) CASE(4)
#if defined __AVX2__ || defined __aarch64__
    CASE(5) CASE(6)
#endif
#if defined __AVX512F__ || defined __aarch64__
    CASE(7) CASE(8)
#endif
  default:
    return tile_of_one_vector;
  }
}

// Compute one panel of c.
static void panel(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, size_t b_row,
                  size_t m, size_t k, const float *plus, size_t plus_row, int vectors) {
  for (size_t i = 0, rows; i < m; i += rows) {
    rows = vectors == 1 && m - i >= 2 * TALL ? 2 * TALL : smaller(m - i, TALL);
    tile_of(rows, vectors)(c + i * c_row, c_row, a + (ptrdiff_t)i * a_row, a_row, a_col, b, b_row, k,
                           plus ? plus + i * plus_row : 0, plus_row);
  }
}

void product_plus(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b, size_t b_row,
                  size_t m, size_t k, size_t n, const float *plus, size_t plus_row) {
  for (size_t p = 0; !p || p < k; p += BLOCK, plus = c, plus_row = c_row) { // also once for k = 0
    size_t depth = smaller(BLOCK, k - p);
    for (size_t j = 0, vectors; j < n; j += vectors * LANES) {
      vectors = j + LANES < n ? 2 : 1;
      panel(c + j, c_row, a + (ptrdiff_t)p * a_col, a_row, a_col, b + p * b_row + j, b_row, m, depth, plus ? plus + j : 0,
            plus_row, (int)vectors);
    }
  }
}
