// tl_row_sums_f32         y[r] = Σ_j x[r, j]
//   layout  x (rows, n) row-major, rows contiguous; y (rows,)
//   align   none needed       length  any      alias  y and x do not overlap
//   error   ≤ (40 + log2 n) ulp of the sum of magnitudes
#include "norm/moments.h"

enum { BLOCK = 1024 }; // elements that are summed before pairs of sums are added

static float pairwise(const float *x, size_t n) {
  if (n <= BLOCK) return total(x, n);
  size_t half = rounded_up(n / 2, BLOCK);
  return pairwise(x, half) + pairwise(x + half, n - half);
}

EXPORT void tl_row_sums_f32(float *y, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n) *y++ = pairwise(x, n);
}
