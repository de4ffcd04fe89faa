// tl_row_sums_f32         y[r] = Σ_j x[r, j]
//   layout  x (rows, n) row-major, rows contiguous; y (rows,)
//   align   none needed       length  any      alias  y and x do not overlap
//   error   ≤ (40 + n / 1024) ulp of the sum of magnitudes
#include "moments.h"

enum { BLOCK = 1024 }; // elements that are summed before they are added to a larger sum

EXPORT void tl_row_sums_f32(float *y, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n) {
    float s = 0.0f;
    for (size_t i = 0; i < n; i += BLOCK) s += total(x + i, smaller(n - i, BLOCK));
    *y++ = s;
  }
}
