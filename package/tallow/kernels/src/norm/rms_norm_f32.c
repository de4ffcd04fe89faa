// y[r, :] = x[r, :] / sqrt(mean(x[r, :]²) + eps) * w            RMSNorm, arXiv:1910.07467 eq. 4
//   layout  x, y (rows, n) row-major, rows contiguous; w (n,), or null for ones
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   error   ≤ 2e-5 relative to float64 for n ≤ 65536; worst on a constant row, where rounding is one-sided (random: 3e-7)
#include "runtime/kernels.h"

static inline float sum_of_squares(const float *x, size_t n) {
  vf acc[4] = {0};
  size_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (size_t u = 0; u < 4; u++) {
      vf v = load(x + i + u * LANES);
      acc[u] = fma(v, v, acc[u]);
    }
  for (; i + LANES <= n; i += LANES) {
    vf v = load(x + i);
    acc[0] = fma(v, v, acc[0]);
  }
  float tail = 0.0f;
  for (; i < n; i++) tail += x[i] * x[i];
  return sum((acc[0] + acc[1]) + (acc[2] + acc[3])) + tail;
}

void tl_rms_norm_f32(float *y, const float *x, const float *w, size_t rows, size_t n, float eps) {
  for (; rows--; x += n, y += n) {
    float scale = 1.0f / __builtin_sqrtf(sum_of_squares(x, n) / (float)n + eps);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      vf v = load(x + i) * splat(scale);
      store(y + i, w ? v * load(w + i) : v);
    }
    for (; i < n; i++) y[i] = x[i] * scale * (w ? w[i] : 1.0f);
  }
}
