// tl_linear_panels: y = x @ wᵀ + bias as in linear.h, for more than a few rows of x, which it converts to panels. Weights in
// float16 and bfloat16 are widened a few rows at a time, while a cache holds them.
//   scratch tl_linear_panels_scratch(m, k, format) floats, contents irrelevant
//   error   k is summed in order, DEPTH elements at a time: ≤ (min(k, 384) + k / 384 + 2) ulp of Σ|x||w|
#include "runtime/kernels.h"
#include "product/panels.h"

enum { CACHED_FLOATS = 128 * 1024 }; // of x, and of widened rows of w: they stay in L2 while they are read

static size_t group_of(size_t m, size_t k) { // panels of x that are computed together
  size_t all = (m + PANEL - 1) / PANEL, fit = CACHED_FLOATS / (k * PANEL + 1);
  return smaller(all, fit ? fit : 1);
}

static size_t columns_of(size_t k) { // rows of w that are widened together
  size_t fit = CACHED_FLOATS / (k + 1) / TALL * TALL;
  return smaller(BREADTH, fit ? fit : TALL);
}

size_t tl_linear_panels_scratch(size_t m, size_t k, int format) {
  return group_of(m, k) * (k + BREADTH) * PANEL + (format == FLOAT32 ? 0 : columns_of(k) * k);
}

void tl_linear_panels(float *y, const float *x, const void *w, const float *bias, size_t m, size_t k, size_t n,
                      ptrdiff_t w_row, size_t y_row, int format, float *scratch) {
  size_t group = group_of(m, k), step = format == FLOAT32 ? BREADTH : columns_of(k);
  float *panels = scratch, *block = panels + group * k * PANEL, *widened = block + group * BREADTH * PANEL;
  for (size_t i = 0; i < m; i += group * PANEL) {
    size_t rows = smaller(group * PANEL, m - i);
    to_panels(panels, x + i * k, rows, k);
    for (size_t j = 0; j < n; j += step) {
      size_t columns = smaller(step, n - j);
      const float *some = (const float *)w + (ptrdiff_t)j * w_row;
      if (format != FLOAT32) {
        const uint16_t *narrow = (const uint16_t *)w + (ptrdiff_t)j * w_row;
        for (size_t c = 0; c < columns; c++, narrow += w_row)
          (format == FLOAT16 ? tl_widen_f16 : tl_widen_bf16)(widened + c * k, narrow, k);
        some = widened;
      }
      panel_product(block, panels, some, format == FLOAT32 ? w_row : (ptrdiff_t)k, bias ? bias + j : 0, rows, k, columns, 0);
      from_panels(y + i * y_row + j, y_row, block, rows, columns);
    }
  }
}
