// y = x @ wᵀ + bias with float32 weights: contract in linear.h.
// tl_linear_panels_f32 is for more than a few rows of x, by panels of them:
//   scratch tl_linear_panels_scratch(m, k) floats, contents irrelevant
//   error   k is summed in order, DEPTH of them at a time: ≤ (min(k, 384) + k / 384 + 2) ulp of Σ|x||w|
#define WEIGHT float
#include "vec.h"

static inline vf widen(const float *p) { return load(p); }
static inline float widen_one(float w) { return w; }

#include "linear.h"
#include "panels.h"

void tl_linear_f32(float *y, const float *x, const float *w, const float *bias, size_t m, size_t k, size_t n,
                   ptrdiff_t w_row, size_t y_row) {
  linear(y, x, w, bias, m, k, n, w_row, y_row);
}

enum { CACHED_FLOATS = 128 * 1024 }; // of x, so that it stays in L2 while w goes by

static size_t group_of(size_t m, size_t k) { // panels of x that are computed together
  size_t all = (m + PANEL - 1) / PANEL, fit = CACHED_FLOATS / (k * PANEL + 1);
  return smaller(all, fit ? fit : 1);
}

EXPORT size_t tl_linear_panels_scratch(size_t m, size_t k) { return group_of(m, k) * (k + BREADTH) * PANEL; }

EXPORT void tl_linear_panels_f32(float *y, const float *x, const float *w, const float *bias, size_t m, size_t k, size_t n,
                                 ptrdiff_t w_row, size_t y_row, float *scratch) {
  size_t group = group_of(m, k);
  float *panels = scratch, *block = panels + group * k * PANEL;
  for (size_t i = 0; i < m; i += group * PANEL) {
    size_t rows = smaller(group * PANEL, m - i);
    to_panels(panels, x + i * k, rows, k);
    for (size_t j = 0; j < n; j += BREADTH) {
      size_t columns = smaller(BREADTH, n - j);
      panel_product(block, panels, w + (ptrdiff_t)j * w_row, w_row, bias ? bias + j : 0, rows, k, columns, 0);
      from_panels(y + i * y_row + j, y_row, block, rows, columns);
    }
  }
}
