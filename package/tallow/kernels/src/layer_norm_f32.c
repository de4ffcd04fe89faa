// y[r, :] = (x[r, :] - mean) / sqrt(var + eps) * w + b, mean and variance over the row        LayerNorm, arXiv:1607.06450
//   layout  x, y (rows, n) row-major, rows contiguous; w, b (n,), each may be null for ones and zeros
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   error   ≤ 2e-6 of max|x[r, :] - mean| / sqrt(var + eps), scaled by w, plus what rounding the mean costs:
//           ≤ 4e-7 · |mean| / sqrt(var + eps). The variance is of the differences from the mean, never E[x²] - mean²
#include "vec.h"

static inline float total(const float *x, size_t n) {
  vf acc[4] = {0};
  size_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (size_t u = 0; u < 4; u++) acc[u] += load(x + i + u * LANES);
  for (; i + LANES <= n; i += LANES) acc[0] += load(x + i);
  float tail = 0.0f;
  for (; i < n; i++) tail += x[i];
  return sum((acc[0] + acc[1]) + (acc[2] + acc[3])) + tail;
}

static inline float squared_distance(const float *x, float mean, size_t n) {
  vf acc[4] = {0}, m = splat(mean);
  size_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (size_t u = 0; u < 4; u++) {
      vf d = load(x + i + u * LANES) - m;
      acc[u] = fma(d, d, acc[u]);
    }
  for (; i + LANES <= n; i += LANES) {
    vf d = load(x + i) - m;
    acc[0] = fma(d, d, acc[0]);
  }
  float tail = 0.0f;
  for (; i < n; i++) tail += (x[i] - mean) * (x[i] - mean);
  return sum((acc[0] + acc[1]) + (acc[2] + acc[3])) + tail;
}

EXPORT void tl_layer_norm_f32(float *y, const float *x, const float *w, const float *b, size_t rows, size_t n, float eps) {
  for (; rows--; x += n, y += n) {
    float mean = total(x, n) / (float)n;
    float scale = 1.0f / __builtin_sqrtf(squared_distance(x, mean, n) / (float)n + eps);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      vf v = (load(x + i) - splat(mean)) * splat(scale);
      if (w) v *= load(w + i);
      if (b) v += load(b + i);
      store(y + i, v);
    }
    for (; i < n; i++) y[i] = (x[i] - mean) * scale * (w ? w[i] : 1.0f) + (b ? b[i] : 0.0f);
  }
}
