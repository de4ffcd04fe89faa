// tl_sum_exp_f32          highest[r] = max_j x[r, j],  total[r] = Σ_j exp(x[r, j] - highest[r])
// tl_scaled_exp_f32       y[r, j] = exp(x[r, j] - shift[r]) * factor[r]
// tl_cross_entropy_backward_f32  y[r, j] = exp(x[r, j] - highest[r]) * (g[r] / total[r]) - (j = target[r] ? g[r] : 0),
//                         a row of zeros for a target outside of 0 .. n - 1
//   layout  x, y (rows, n) row-major, rows contiguous; highest, total, shift, factor, g, target (rows,)
//   range   x ≤ shift
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   special as softmax: a row with NaN or +inf, or with -inf only, has the total NaN
//   error   total ≤ 2e-6 relative to float64 for n ≤ 65536; y ≤ 3 ulp of the exponential of the rounded difference,
//           which is 0 below 2^-126
#include "runtime/vec.h"

EXPORT void tl_sum_exp_f32(float *highest, float *total, const float *x, size_t rows, size_t n) {
  size_t whole = n / LANES * LANES, rest = n - whole;
  for (; rows--; x += n) {
    float top = largest_of(x, n);
    vf acc = {0};
    for (size_t i = 0; i < whole; i += LANES) acc += exp_below_1(load(x + i) - splat(top));
    float sum_of_row = sum(acc);
    if (rest) { // not for a full row: -inf - -inf in the padding would be NaN
      vf e = exp_below_1(load_part(x + whole, rest, 0.0f) - splat(top));
      for (size_t i = 0; i < rest; i++) sum_of_row += e[i];
    }
    *highest++ = top, *total++ = sum_of_row;
  }
}

// Not inlined into the next one, which would double the code.
EXPORT __attribute__((noinline)) void tl_scaled_exp_f32(float *y, const float *x, const float *shift,
                                                        const float *factor, size_t rows, size_t n) {
  for (; rows--; x += n, y += n, shift++, factor++) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, exp_below_1(load(x + i) - splat(*shift)) * splat(*factor));
    store_part(y + i, n - i, exp_below_1(load_part(x + i, n - i, 0.0f) - splat(*shift)) * splat(*factor));
  }
}

EXPORT void tl_cross_entropy_backward_f32(float *y, const float *x, const float *highest, const float *total, const float *g,
                                   const int64_t *target, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; r++, x += n, y += n) {
    int counts = (uint64_t)target[r] < n;
    float factor = counts ? g[r] / total[r] : 0.0f;
    tl_scaled_exp_f32(y, x, highest + r, &factor, 1, n);
    if (counts) y[target[r]] -= g[r];
  }
}
