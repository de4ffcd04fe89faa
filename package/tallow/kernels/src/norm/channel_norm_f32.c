// tl_moments_f32          mean[r] of a row, spread[r] = Σ_j (x[r, j] - mean[r])²
// tl_affine_f32           y[r, j] = (x[r, j] - centre[r]) * scale[r] + shift[r]
// tl_moments_backward_f32 total[r] = Σ_j g[r, j],  along[r] = Σ_j g[r, j] (x[r, j] - centre[r])
// tl_affine_backward_f32  dx[r, j] = g[r, j] * by_g[r] + (x[r, j] - centre[r]) * by_x[r] + shift[r]
//   layout  x, y, g, dx (rows, n) row-major, rows contiguous; all other arrays (rows,)
//   align   none needed       length  any n ≥ 1
//   alias   y may be x, and dx may be g; any other overlap is undefined
//   error   mean, total ≤ (n / 32 + 8) ulp of the mean and sum of magnitudes; spread and along likewise, plus the
//           rounding error of the mean
//
// A row is one channel of one sample. The caller combines the statistics that several rows share: they are one number
// per row, and rows are long.
#include "norm/moments.h"

EXPORT void tl_moments_f32(float *mean, float *spread, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n) {
    float m = total(x, n) / (float)n;
    *mean++ = m, *spread++ = squared_distance(x, m, n);
  }
}

EXPORT void tl_affine_f32(float *y, const float *x, const float *centre, const float *scale, const float *shift, size_t rows,
                          size_t n) {
  for (; rows--; x += n, y += n, centre++, scale++, shift++) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, fma(load(x + i) - splat(*centre), splat(*scale), splat(*shift)));
    for (; i < n; i++) y[i] = (x[i] - *centre) * *scale + *shift;
  }
}

EXPORT void tl_moments_backward_f32(float *total, float *along, const float *g, const float *x, const float *centre,
                                    size_t rows, size_t n) {
  for (; rows--; x += n, g += n, centre++) {
    vf acc[2] = {0}, acc_along[2] = {0}, c = splat(*centre);
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
      for (size_t u = 0; u < 2; u++) {
        vf gradient = load(g + i + u * LANES);
        acc[u] += gradient;
        acc_along[u] = fma(gradient, load(x + i + u * LANES) - c, acc_along[u]);
      }
    float tail = 0.0f, tail_along = 0.0f;
    for (; i < n; i++) tail += g[i], tail_along += g[i] * (x[i] - *centre);
    *total++ = sum(acc[0] + acc[1]) + tail, *along++ = sum(acc_along[0] + acc_along[1]) + tail_along;
  }
}

EXPORT void tl_affine_backward_f32(float *dx, const float *g, const float *x, const float *centre, const float *by_g,
                                   const float *by_x, const float *shift, size_t rows, size_t n) {
  for (; rows--; x += n, g += n, dx += n, centre++, by_g++, by_x++, shift++) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      vf from_x = fma(load(x + i) - splat(*centre), splat(*by_x), splat(*shift));
      store(dx + i, fma(load(g + i), splat(*by_g), from_x));
    }
    for (; i < n; i++) dx[i] = g[i] * *by_g + (x[i] - *centre) * *by_x + *shift;
  }
}
