// tl_row_sums_f32         y[r] = Σ_j x[r, j]
// tl_row_squares_f32      y[r] = Σ_j x[r, j]²
//   layout  x (rows, n) row-major, rows contiguous; y (rows,)
//   align   none needed       length  any      alias  y and x do not overlap
//   error   ≤ (40 + log2 n) ulp of the sum of magnitudes
#include "norm/moments.h"

enum { BLOCK = 1024 }; // elements that are summed before pairs of sums are added

#define PAIRWISE(NAME, SUM)                                         \
  static float NAME(const float *x, size_t n) {                     \
    if (n <= BLOCK) return SUM;                                     \
    size_t half = rounded_up(n / 2, BLOCK);                         \
    return NAME(x, half) + NAME(x + half, n - half);                \
  }

PAIRWISE(of_elements, total(x, n))
PAIRWISE(of_squares, squared_distance(x, 0.0f, n))

EXPORT void tl_row_sums_f32(float *y, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n) *y++ = of_elements(x, n);
}

EXPORT void tl_row_squares_f32(float *y, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n) *y++ = of_squares(x, n);
}
