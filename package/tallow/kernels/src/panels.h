// Matrices whose rows lie PANEL abreast, and their product with weights that are read as they lie:
//
//              PANEL rows            element f of row r is at ((r / PANEL) · width + f) · PANEL + r % PANEL
//            ┌───────────┐
//     width  │ one panel │  next    y = x @ wᵀ + bias takes TALL rows of w and two vectors of x: an element of w is spread
//            └───────────┘          over a vector, and the sums are two vectors of each of TALL columns of y, in place
//
// So neither w nor y is packed or turned round, what works along a row works on PANEL rows at a time and sums nothing
// across a vector, and what one product leaves is what the next one wants. One core of a Zen 4, w (1536, 384), GFLOP/s:
//            16 rows    64 rows    128 rows    512 rows
//   this       66         100        106         107
//   OpenBLAS   21          62         78          96

#ifndef TALLOW_PANELS_H
#define TALLOW_PANELS_H

#include "vec.h"

enum {
  PANEL = 2 * LANES,
  TALL = LANES == 8 ? 6 : 4, // TALL · 2 sums, two vectors of x and one element of w: sixteen registers
  DEPTH = 384,               // of a panel of x, so much stays in L1 while w goes by
  BREADTH = 96,              // rows of w, DEPTH of each: they stay in L2 for all panels
  STEP = 16                  // elements of a row of w in a cache line
};

// `rows` columns of one panel of y, begun with the bias (or zeros) or with what is there. With `ahead` the next rows of w are
// fetched; past the end that is void.
static inline __attribute__((always_inline)) void panel_tile(float *y, const float *x, const float *w, ptrdiff_t w_row,
                                                             const float *bias, size_t k, int accumulate, int ahead,
                                                             int rows) {
  vf acc[TALL][2] = {0};
  for (size_t p = 0; p < k; p += STEP) {
    if (ahead)
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) __builtin_prefetch(w + (rows + i) * w_row + (ptrdiff_t)p, 0, 2);
    const float *column = w + p, *end = w + smaller(p + STEP, k);
#pragma clang loop unroll(disable)
    for (; column < end; column++, x += PANEL) {
      vf x0 = load(x), x1 = load(x + LANES);
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        vf weight = splat(column[i * w_row]);
        acc[i][0] = fma(weight, x0, acc[i][0]);
        acc[i][1] = fma(weight, x1, acc[i][1]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < 2; v++) {
      float *out = y + i * PANEL + v * LANES;
      store(out, acc[i][v] + (accumulate ? load(out) : splat(bias ? bias[i] : 0.0f)));
    }
}

#define PANEL_TILE(NAME, rows)                                                                                           \
  static __attribute__((noinline)) void NAME(float *y, const float *x, const float *w, ptrdiff_t w_row,                  \
                                             const float *bias, size_t k, int accumulate, int ahead) {                   \
    panel_tile(y, x, w, w_row, bias, k, accumulate, ahead, rows);                                                        \
  }

PANEL_TILE(tall_tile, TALL)
PANEL_TILE(flat_tile, 1)

// y (panels, n, PANEL) = x (panels, k, PANEL) @ wᵀ + bias, w (n, k) contiguous, bias (n,) or null; `then`, if any, is applied
// to all of y while it is in a cache.
static void panel_product(float *y, const float *x, const float *w, const float *bias, size_t panels, size_t k, size_t n,
                          void (*then)(float *y, size_t n)) {
  for (size_t j0 = 0; j0 < n; j0 += BREADTH) {
    size_t end = smaller(j0 + BREADTH, n);
    for (size_t p = 0; p < k; p += DEPTH)
      for (size_t i = 0; i < panels; i++) {
        size_t depth = smaller(DEPTH, k - p), j = j0;
        const float *from = x + (i * k + p) * PANEL;
        float *to = y + i * n * PANEL;
        for (; j + TALL <= end; j += TALL)
          tall_tile(to + j * PANEL, from, w + j * k + p, (ptrdiff_t)k, bias ? bias + j : 0, depth, p > 0, i == 0);
        for (; j < end; j++)
          flat_tile(to + j * PANEL, from, w + j * k + p, (ptrdiff_t)k, bias ? bias + j : 0, depth, p > 0, i == 0);
      }
    for (size_t i = 0; then && i < panels; i++) then(y + (i * n + j0) * PANEL, (end - j0) * PANEL);
  }
}

// x (rows, width) -> panels, the last filled up with zeros; from the panel `first` to `last`
static void to_panels(float *y, const float *x, size_t rows, size_t width, size_t first, size_t last) {
  for (size_t r = first * PANEL; r < last * PANEL; r++) {
    float *out = y + r / PANEL * width * PANEL + r % PANEL;
    for (size_t f = 0; f < width; f++) out[f * PANEL] = r < rows ? x[r * width + f] : 0.0f;
  }
}

static void from_panels(float *y, const float *x, size_t rows, size_t width, size_t first, size_t last) {
  for (size_t r = first * PANEL; r < smaller(last * PANEL, rows); r++) {
    const float *in = x + r / PANEL * width * PANEL + r % PANEL;
    for (size_t f = 0; f < width; f++) y[r * width + f] = in[f * PANEL];
  }
}

#endif
