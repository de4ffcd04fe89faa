// Matrices with PANEL interleaved rows, and their product with unpacked weights:
//
//              PANEL rows            element f of row r is at ((r / PANEL) · width + f) · PANEL + r % PANEL
//            ┌───────────┐
//     width  │ one panel │  next    y = x @ wᵀ + bias takes TALL rows of w and two vectors of x: an element of w is
//            └───────────┘          broadcast to a vector, and the sums are two vectors of each of TALL columns of y, in place
//
// So neither w nor y is packed or transposed; operations along a row work on PANEL rows at a time without sums across a
// vector; and the output of one product has the layout that the next one reads. One core of a Zen 4, w (1536, 384), GFLOP/s:
//            16 rows    64 rows    128 rows    512 rows
//   this       66         100        106         107
//   OpenBLAS   21          62         78          96

#ifndef TALLOW_PANELS_H
#define TALLOW_PANELS_H

#include "product/transpose.h"

enum {
  PANEL = 2 * LANES, // two vectors
#if defined __AVX512F__
  TALL = 12, // 24 sums, two vectors of x and one element of w, of 32 registers
#elif defined __wasm__
  TALL = 4, // engines keep only this many sums in registers
#else
  TALL = 6, // 12 sums, two vectors of x and one element of w: sixteen registers
#endif
  DEPTH = 384,  // of a panel of x, which stays in L1 while w is read
  BREADTH = 96, // rows of w, DEPTH of each: they stay in L2 for all panels
  STEP = 16     // elements of a row of w in a cache line
};

// Compute `rows` columns of one panel of y, or of its first vector only, starting from the bias (or zeros) or from the
// present content. `ahead` prefetches the next rows of w to L2, because the panel fills L1; it has no effect past the
// end.
static inline __attribute__((always_inline)) void panel_tile(float *y, const float *x, const float *w, ptrdiff_t w_row,
                                                             const float *bias, size_t k, int accumulate, int ahead,
                                                             int rows, int vectors) {
  vf acc[TALL][2] = {0};
  for (size_t p = 0; p < k; p += STEP) {
    if (ahead)
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) __builtin_prefetch(w + (rows + i) * w_row + (ptrdiff_t)p, 0, 2);
    const float *column = w + p, *end = w + smaller(p + STEP, k);
#pragma clang loop unroll(disable)
    for (; column < end; column++, x += PANEL) {
      vf part[2];
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) part[v] = load(x + v * LANES);
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        vf weight = splat(column[i * w_row]);
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) acc[i][v] = fma(weight, part[v], acc[i][v]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) {
      float *out = y + i * PANEL + v * LANES;
      store(out, acc[i][v] + (accumulate ? load(out) : splat(bias ? bias[i] : 0.0f)));
    }
}

#define PANEL_TILE(NAME, rows, vectors)                                                                                  \
  static __attribute__((noinline)) void NAME(float *y, const float *x, const float *w, ptrdiff_t w_row,                  \
                                             const float *bias, size_t k, int accumulate, int ahead) {                   \
    panel_tile(y, x, w, w_row, bias, k, accumulate, ahead, rows, vectors);                                               \
  }

PANEL_TILE(tall_tile, TALL, 2)
PANEL_TILE(flat_tile, 1, 2)
PANEL_TILE(tall_tile_of_half, TALL, 1)
PANEL_TILE(flat_tile_of_half, 1, 1)

// y (rows of x, n) = x @ wᵀ + bias, x (rows, k) and y in panels, w (n, k) with rows w_row apart, bias (n,) or null;
// `then`, if any, is applied to all of y while it is in a cache. Elements of y without a row of x are undefined.
static void panel_product(float *y, const float *x, const float *w, ptrdiff_t w_row, const float *bias, size_t rows,
                          size_t k, size_t n, void (*then)(float *y, size_t n)) {
  for (size_t j0 = 0; j0 < n; j0 += BREADTH) {
    size_t end = smaller(j0 + BREADTH, n), p = 0;
    do // also once for k = 0
      for (size_t r = 0; r < rows; r += PANEL) {
        size_t depth = smaller(DEPTH, k - p), j = j0;
        const float *from = x + r * k + p * PANEL;
        int half = rows - r <= LANES, ahead = r == 0;
        for (; j + TALL <= end; j += TALL)
          (half ? tall_tile_of_half : tall_tile)(y + r * n + j * PANEL, from, w + (ptrdiff_t)j * w_row + p, w_row,
                                                 bias ? bias + j : 0, depth, p > 0, ahead);
        for (; j < end; j++)
          (half ? flat_tile_of_half : flat_tile)(y + r * n + j * PANEL, from, w + (ptrdiff_t)j * w_row + p, w_row,
                                                 bias ? bias + j : 0, depth, p > 0, ahead);
      }
    while ((p += DEPTH) < k);
    for (size_t r = 0; then && r < rows; r += PANEL) then(y + r * n + j0 * PANEL, (end - j0) * PANEL);
  }
}

// x (rows, width) -> panels. The last vector with rows is padded with zeros; another one after it is undefined.
static void to_panels(float *y, const float *x, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r += PANEL, y += width * PANEL) {
    size_t count = smaller(PANEL, rows - r), whole = count / LANES * LANES;
    for (size_t f = 0; count > whole && f < width; f++) store(y + f * PANEL + whole, splat(0.0f));
    transpose(y, PANEL, x + r * width, width, count, width);
  }
}

// panels -> y (rows, width), rows y_row apart
static void from_panels(float *y, size_t y_row, const float *x, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r += PANEL, x += width * PANEL)
    transpose(y + r * y_row, y_row, x, PANEL, width, smaller(PANEL, rows - r));
}

#endif
