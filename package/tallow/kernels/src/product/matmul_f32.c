// c[i] = a[i] @ b[i] + bias  for i < batch             (M, K) @ (K, N) -> (M, N), float32
//   bias    N floats that are added to each row, or null; with K = 0 null
//   layout  a, b: each row- or column-contiguous, any strides (in elements) along the other axis; c with contiguous rows,
//           c_row apart, and no other space between matrices. a[i] begins at a + a_offset[i], likewise b; so batches may be broadcast, permuted or overlap. Null is zeros
//   scratch tl_matmul_scratch() floats, contents irrelevant
//   align   none needed       length  any M, N ≥ 1; K = 0 gives zeros
//   alias   c and scratch overlap nothing
//   error   ≤ (K / 4 + 2) ulp of |bias| + Σ|a||b|: K is summed in order within blocks of KC
//
// Blocked as in Goto & van de Geijn 2008 (doi:10.1145/1356052.1356053), but A is read where it is:
//
//              NC
//         ┌─────────┐                   a block of B is copied to rows that do not compete for the sets of a cache. It
//       KC│ │panel  │                   stays in L2 or L3; a panel of it in L1, while rows of A stream by (product.c)
//    KC   └─────────┘                   the block of A (MC·KC·4 = 192 KiB) stays in L2 for all panels of B
//  ┌─────┐┌─────────┐
//  │  A  ││    C    │ MC
//  └─────┘└─────────┘
//
// Without a bias, operands too thin for a copy to pay off go to tl_linear_f32 and tl_vecmat_f32, which read each operand
// once. They require a (up to four rows) or b (one column) to be contiguous. The library of x86-64-v4 is not called with such operands.
#include "runtime/kernels.h"
#include "product/product.h"
#include "product/transpose.h"

enum { KC = 3072 / LANES < 384 ? 3072 / LANES : 384, MC = 49152 / KC, NC = 512 };

// The copy of a block of B, and a part of C at its right edge of one vector.
EXPORT size_t tl_matmul_scratch(void) { return KC * row_of(NC) + MC * LANES; }

// c (m, n), rows c_row apart, = a @ b + plus, b with padded rows; plus is c, a bias with plus_row 0, or null
static void product_of_columns(float *c, size_t c_row, const float *a, ptrdiff_t a_row, ptrdiff_t a_col, const float *b,
                               size_t b_row, size_t m, size_t k, size_t n, const float *plus, size_t plus_row, float *edge) {
  size_t whole = n / LANES * LANES;
  product_plus(c, c_row, a, a_row, a_col, b, b_row, m, k, whole, plus, plus_row);
  if (whole == n) return;
  product(edge, LANES, a, a_row, a_col, b + whole, b_row, m, k, LANES, 0);
  for (size_t i = 0; i < m; i++)
    for (size_t j = whole; j < n; j++) c[i * c_row + j] = edge[i * LANES + j - whole] + (plus ? plus[i * plus_row + j] : 0.0f);
}

static void blocked(float *c, const float *a, const float *b, const float *bias, size_t m, size_t k, size_t n, size_t c_row,
                    ptrdiff_t a_row, ptrdiff_t a_col, ptrdiff_t b_row, ptrdiff_t b_col, float *scratch) {
  float *edge = scratch + KC * row_of(NC);
  for (size_t j0 = 0; j0 < n; j0 += NC) {
    size_t nc = smaller(NC, n - j0), row = row_of(nc);
    for (size_t p0 = 0; p0 < k; p0 += KC) {
      size_t kc = smaller(KC, k - p0);
      const float *block = b + (ptrdiff_t)p0 * b_row + (ptrdiff_t)j0 * b_col;
      if (b_col != 1) transpose(scratch, row, block, (size_t)b_col, nc, kc);
      for (size_t p = 0; p < kc; p++) {
        for (size_t j = 0; b_col == 1 && j < nc; j++) scratch[p * row + j] = block[(ptrdiff_t)p * b_row + (ptrdiff_t)j];
        clear(scratch + p * row + nc, to_lanes(nc) - nc);
      }
      for (size_t i0 = 0; i0 < m; i0 += MC) {
        float *out = c + i0 * c_row + j0;
        const float *plus = p0 ? out : bias ? bias + j0 : 0;
        product_of_columns(out, c_row, a + (ptrdiff_t)i0 * a_row + (ptrdiff_t)p0 * a_col, a_row, a_col, scratch, row,
                           smaller(MC, m - i0), kc, nc, plus, p0 ? c_row : 0, edge);
      }
    }
  }
}

#if defined __AVX512F__
#define one blocked
#else
static void one(float *c, const float *a, const float *b, const float *bias, size_t m, size_t k, size_t n, size_t c_row,
                ptrdiff_t a_row, ptrdiff_t a_col, ptrdiff_t b_row, ptrdiff_t b_col, float *scratch) {
  int few_rows = m <= 4 && a_col == 1 && (a_row == (ptrdiff_t)k || m == 1), one_column = n == 1 && b_row == 1;
  if (bias)
    blocked(c, a, b, bias, m, k, n, c_row, a_row, a_col, b_row, b_col, scratch);
  else if (few_rows && b_row == 1)
    tl_linear_f32(c, a, b, 0, m, k, n, b_col, c_row);
  else if (few_rows && b_col == 1)
    for (size_t i = 0; i < m; i++) tl_vecmat_f32(c + i * c_row, a + i * k, b, k, n, b_row);
  else if (one_column && a_col == 1)
    tl_linear_f32(c, b, a, 0, 1, k, m, a_row, m);
  else if (one_column && a_row == 1)
    tl_vecmat_f32(c, b, a, k, m, a_col);
  else
    blocked(c, a, b, 0, m, k, n, c_row, a_row, a_col, b_row, b_col, scratch);
}
#endif

EXPORT void tl_matmul_f32(float *c, const float *a, const float *b, const float *bias, const ptrdiff_t *a_offset,
                          const ptrdiff_t *b_offset, size_t batch, size_t m, size_t k, size_t n, size_t c_row, ptrdiff_t a_row,
                          ptrdiff_t a_col, ptrdiff_t b_row, ptrdiff_t b_col, float *scratch) {
  if (k == 0)
    for (size_t i = 0; i < batch * m; i++) clear(c + i * c_row, n);
  else
    for (size_t i = 0; i < batch; i++) {
      const float *ai = a + (a_offset ? a_offset[i] : 0), *bi = b + (b_offset ? b_offset[i] : 0);
      one(c + i * m * c_row, ai, bi, bias, m, k, n, c_row, a_row, a_col, b_row, b_col, scratch);
    }
}
