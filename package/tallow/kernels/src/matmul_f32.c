// c[i] = a[i] @ b[i]  for i < batch                    (M, K) @ (K, N) -> (M, N), float32
//   layout  a, b: each row- or column-contiguous, any strides (in elements) along the other axis; c row-major, contiguous.
//           a[i] begins at a + a_offset[i], likewise b; so batches may be broadcast, permuted or overlap. Null is zeros
//   scratch min(k, KC) · (min(m, MC) + min(n, NC)) floats, m and n rounded up to MR and NR; contents irrelevant
//   align   none needed       length  any M, N ≥ 1; K = 0 gives zeros
//   alias   c and scratch overlap nothing
//   error   ≤ (K / 4 + 2) ulp of Σ|a||b|: K is summed in order within blocks of KC
//
// Blocked as in Goto & van de Geijn 2008 (doi:10.1145/1356052.1356053). B is packed by panels of NR columns, A by panels
// of MR rows, both zero-filled at the edge, and the tile of C lives in registers:
//
//              NR                       a panel is read front to back:
//         ┌────────┐                      A panel: MR floats for k = 0, then MR for k = 1, ...
//       K │ B panel│                      B panel: NR floats for k = 0, then NR for k = 1, ...
//    K    └────────┘
//  ┌─────┐┌────────┐                    KC: a B panel (NR·KC·4 = 12 KiB) stays in L1 while A panels stream by
//  │  A  ││   C    │ MR                 MC: the packed block of A (MC·KC·4 = 192 KiB) stays in L2
//  └─────┘└────────┘
//
// Operands too thin for packing to pay off go to tl_linear_f32 and tl_vecmat_f32, which read each operand once without
// packing. They require a (up to four rows) or b (one column) to be contiguous; otherwise the tile is used.
#include "kernels.h"

enum { MR = 4, NR = 8, KC = 384, MC = 128, NC = 1024 };

typedef float quad __attribute__((vector_size(16), aligned(4))); // MR and NR are multiples of it, even if not of LANES

// Return MR, NR, KC, MC, NC, from which the caller computes the scratch size.
EXPORT void tl_matmul_f32_blocks(size_t *out) {
  out[0] = MR, out[1] = NR, out[2] = KC, out[3] = MC, out[4] = NC;
}

// Pack `count` ≤ width lines, each of length k, into dst[p * width + line]; line l, element p is at src[l * line + p * step].
// Missing lines are filled with zeros, so that the tile loop has no edge cases.
static inline void pack_panel(float *dst, const float *src, size_t count, size_t width, size_t k, ptrdiff_t line,
                              ptrdiff_t step) {
  if (count == width && line == 1) {
    for (size_t p = 0; p < k; p++, src += step, dst += width)
      for (size_t l = 0; l < width; l += 4) *(quad *)(dst + l) = *(const quad *)(src + l);
    return;
  }
  size_t p = 0;
  if (count == width && step == 1) {
    for (; p + 4 <= k; p += 4) // four by four: each cache line of the source is read completely
      for (size_t l = 0; l < width; l++)
        for (size_t i = 0; i < 4; i++) dst[(p + i) * width + l] = src[(ptrdiff_t)l * line + (ptrdiff_t)(p + i)];
  }
  for (; p < k; p++)
    for (size_t l = 0; l < width; l++)
      dst[p * width + l] = l < count ? src[(ptrdiff_t)l * line + (ptrdiff_t)p * step] : 0.0f;
}

static void pack(float *dst, const float *src, size_t lines, size_t width, size_t k, ptrdiff_t line, ptrdiff_t step) {
  for (size_t l = 0; l < lines; l += width, dst += width * k)
    pack_panel(dst, src + (ptrdiff_t)l * line, smaller(width, lines - l), width, k, line, step);
}

// One tile: c (rows ≤ MR, cols ≤ NR, row stride ldc) = or += A panel @ B panel. Not inlined and not unrolled along k:
// otherwise the compiler gathers elements of A by shuffles, or keeps more than sixteen registers alive, and the
// engine's code runs at half the speed (Chromium 156: 62 GFLOP/s, and 16 to 33 if unrolled by two).
static __attribute__((noinline)) void tile(float *c, size_t ldc, size_t rows, size_t cols, const float *a, const float *b,
                                           size_t k, int accumulate) {
  enum { V = NR / LANES };
  vf acc[MR][V] = {0};
  for (; k--; a += MR, b += NR)
#pragma clang loop unroll(full)
    for (int i = 0; i < MR; i++)
#pragma clang loop unroll(full)
      for (int v = 0; v < V; v++) acc[i][v] = fma(splat(a[i]), load(b + v * LANES), acc[i][v]);

  if (rows == MR && cols == NR) {
#pragma clang loop unroll(full)
    for (int i = 0; i < MR; i++)
#pragma clang loop unroll(full)
      for (int v = 0; v < V; v++) {
        float *out = c + (size_t)i * ldc + v * LANES;
        store(out, accumulate ? load(out) + acc[i][v] : acc[i][v]);
      }
    return;
  }
  float whole[MR * NR];
  for (int i = 0; i < MR; i++)
    for (int v = 0; v < V; v++) store(whole + i * NR + v * LANES, acc[i][v]);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < cols; j++) c[i * ldc + j] = whole[i * NR + j] + (accumulate ? c[i * ldc + j] : 0.0f);
}

static void blocked(float *c, const float *a, const float *b, size_t m, size_t k, size_t n, ptrdiff_t a_row, ptrdiff_t a_col,
                ptrdiff_t b_row, ptrdiff_t b_col, float *scratch) {
  float *a_packed = scratch, *b_packed = scratch + smaller(k, KC) * rounded_up(smaller(m, MC), MR);
  for (size_t j0 = 0; j0 < n; j0 += NC) {
    size_t nc = smaller(NC, n - j0);
    for (size_t p0 = 0; p0 < k; p0 += KC) {
      size_t kc = smaller(KC, k - p0);
      pack(b_packed, b + (ptrdiff_t)p0 * b_row + (ptrdiff_t)j0 * b_col, nc, NR, kc, b_col, b_row);
      for (size_t i0 = 0; i0 < m; i0 += MC) {
        size_t mc = smaller(MC, m - i0);
        pack(a_packed, a + (ptrdiff_t)i0 * a_row + (ptrdiff_t)p0 * a_col, mc, MR, kc, a_row, a_col);
        for (size_t j = 0; j < nc; j += NR)
          for (size_t i = 0; i < mc; i += MR)
            tile(c + (i0 + i) * n + j0 + j, n, smaller(MR, mc - i), smaller(NR, nc - j), a_packed + i * kc,
                 b_packed + j * kc, kc, p0 > 0);
      }
    }
  }
}

static void one(float *c, const float *a, const float *b, size_t m, size_t k, size_t n, ptrdiff_t a_row, ptrdiff_t a_col,
                ptrdiff_t b_row, ptrdiff_t b_col, float *scratch) {
  int few_rows = m <= MR && a_col == 1 && (a_row == (ptrdiff_t)k || m == 1), one_column = n == 1 && b_row == 1;
  if (few_rows && b_row == 1)
    tl_linear_f32(c, a, b, 0, m, k, n, b_col, n);
  else if (few_rows && b_col == 1)
    for (size_t i = 0; i < m; i++) tl_vecmat_f32(c + i * n, a + i * k, b, k, n, b_row);
  else if (one_column && a_col == 1)
    tl_linear_f32(c, b, a, 0, 1, k, m, a_row, m);
  else if (one_column && a_row == 1)
    tl_vecmat_f32(c, b, a, k, m, a_col);
  else
    blocked(c, a, b, m, k, n, a_row, a_col, b_row, b_col, scratch);
}

EXPORT void tl_matmul_f32(float *c, const float *a, const float *b, const ptrdiff_t *a_offset, const ptrdiff_t *b_offset,
                          size_t batch, size_t m, size_t k, size_t n, ptrdiff_t a_row, ptrdiff_t a_col, ptrdiff_t b_row,
                          ptrdiff_t b_col, float *scratch) {
  if (k == 0)
    for (size_t i = 0; i < batch * m * n; i++) c[i] = 0.0f;
  else
    for (size_t i = 0; i < batch; i++) {
      const float *ai = a + (a_offset ? a_offset[i] : 0), *bi = b + (b_offset ? b_offset[i] : 0);
      one(c + i * m * n, ai, bi, m, k, n, a_row, a_col, b_row, b_col, scratch);
    }
}
