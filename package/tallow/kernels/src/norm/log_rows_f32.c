// tl_log_softmax_f32   y[r, j] = x[r, j] - highest[r] - log total[r]
// tl_cross_entropy_f32  losses[r] = log total[r] - (x[r, target[r]] - highest[r])
//   highest[r] = max_j x[r, j],  total[r] = Σ_j exp(x[r, j] - highest[r]), which tl_cross_entropy_f32 writes too
//   layout  x, y (rows, n) row-major, rows contiguous; losses, highest, total, target (rows,)
//   range   any target; one outside of 0 .. n - 1 has the loss NaN
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   special as softmax: a row with NaN or +inf, or with -inf only, becomes NaN
//   error   ≤ 2e-6 absolute for n ≤ 65536, and the rounding of the result
#include "runtime/kernels.h"

EXPORT void tl_sum_exp_f32(float *highest, float *total, const float *x, size_t rows, size_t n);

// ln x for x ≥ 1 and NaN, in double: x = m 2^e with m in [√½, √2), ln m = 2 artanh((m - 1) / (m + 1)).
static double natural_log(double x) {
  union {
    double number;
    uint64_t bits;
  } m = {x};
  if (x != x) return x;
  const uint64_t half = 0x3fe6a09e667f3bcd; // √½
  int64_t e = (int64_t)(m.bits - half) >> 52;
  m.bits -= (uint64_t)e << 52;
  double s = (m.number - 1.0) / (m.number + 1.0), q = s * s, sum = 1.0 / 13.0;
  for (int k = 11; k > 0; k -= 2) sum = sum * q + 1.0 / k;
  return (double)e * 0.69314718055994531 + 2.0 * s * sum;
}

EXPORT void tl_log_softmax_f32(float *y, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n, y += n) {
    float highest, total;
    tl_sum_exp_f32(&highest, &total, x, 1, n);
    vf top = splat(highest), log_sum = splat((float)natural_log(total));
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(x + i) - top - log_sum);
    store_part(y + i, n - i, load_part(x + i, n - i, 0.0f) - top - log_sum);
  }
}

EXPORT void tl_cross_entropy_f32(float *losses, float *highest, float *total, const float *x, const int64_t *target,
                                size_t rows, size_t n) {
  tl_sum_exp_f32(highest, total, x, rows, n);
  for (size_t r = 0; r < rows; r++, x += n)
    losses[r] = (uint64_t)target[r] < n ? (float)(natural_log(total[r]) - (double)(x[target[r]] - highest[r]))
                                        : __builtin_nanf("");
}
