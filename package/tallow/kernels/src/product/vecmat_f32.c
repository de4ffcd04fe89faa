// y[j] = Σ_p x[p] b[p, j]      one row times a matrix whose rows are contiguous: read once, front to back
//   layout  x (k,), y (n,) contiguous; b (k, n), rows contiguous, b_row elements apart
//   align   none needed       length  any n; k = 0 gives zeros
//   alias   y overlaps nothing
//   error   ≤ (k / 4 + 4) ulp of Σ|x||b|
#include "runtime/kernels.h"

enum { BLOCK = 2048 }; // elements of y that stay in L1 while rows of b are read, four at a time

void tl_vecmat_f32(float *y, const float *x, const float *b, size_t k, size_t n, ptrdiff_t b_row) {
  for (size_t j0 = 0; j0 < n; j0 += BLOCK, y += BLOCK, b += BLOCK) {
    size_t width = n - j0 < BLOCK ? n - j0 : BLOCK, whole = width / LANES * LANES, p = 0;
    for (size_t j = 0; j < width; j++) y[j] = 0.0f;
    for (; p + 4 <= k; p += 4) {
      const float *r0 = b + (ptrdiff_t)p * b_row, *r1 = r0 + b_row, *r2 = r1 + b_row, *r3 = r2 + b_row;
      vf x0 = splat(x[p]), x1 = splat(x[p + 1]), x2 = splat(x[p + 2]), x3 = splat(x[p + 3]);
      for (size_t j = 0; j < whole; j += LANES) {
        vf even = fma(x2, load(r2 + j), fma(x0, load(r0 + j), load(y + j)));
        vf odd = fma(x3, load(r3 + j), x1 * load(r1 + j));
        store(y + j, even + odd);
      }
      for (size_t j = whole; j < width; j++) y[j] += (x[p] * r0[j] + x[p + 1] * r1[j]) + (x[p + 2] * r2[j] + x[p + 3] * r3[j]);
    }
    for (; p < k; p++)
      for (size_t j = 0; j < width; j++) y[j] += x[p] * b[(ptrdiff_t)p * b_row + (ptrdiff_t)j];
  }
}
