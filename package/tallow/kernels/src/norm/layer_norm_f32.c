// tl_layer_norm_f32           y[r, :] = (x[r, :] - mean) / sqrt(var + eps) * w + b, mean and variance over the row
// tl_layer_norm_backward_f32  dx, dw, db from g, the gradient of y                       LayerNorm, arXiv:1607.06450
// tl_layer_norm_dx_f32        dx alone, and the mean and 1 / sqrt(var + eps) of each row as stats
// tl_layer_norm_dw_f32        add columns first to last - 1 of dw and db
//   layout  x, y, g, dx (rows, n) row-major, rows contiguous; w, b, dw, db (n,), w and b may be null for ones and zeros;
//           stats (rows, 2)
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   error   ≤ 2e-6 of max|x[r, :] - mean| / sqrt(var + eps), scaled by w, plus the rounding error of the mean:
//           ≤ 4e-7 · |mean| / sqrt(var + eps). The variance is computed from the differences from the mean, never as
//           E[x²] - mean².
//           dx ≤ 1e-5 of the largest |g w| / sqrt(var + eps) of the row, plus the same for the mean; dw and db are
//           summed over the rows in order
//   threads dx of some rows, then dw and db of some columns, `first` a multiple of 16, have the bits of the whole
#include "norm/moments.h"

EXPORT void tl_layer_norm_dx_f32(float *dx, float *stats, const float *g, const float *x, const float *w, size_t rows, size_t n,
                                 float eps);
EXPORT void tl_layer_norm_dw_f32(float *dw, float *db, const float *g, const float *x, const float *stats, size_t first,
                                 size_t last, size_t rows, size_t n);
EXPORT void tl_layer_norm_backward_f32(float *dx, float *dw, float *db, const float *g, const float *x, const float *w,
                                       size_t rows, size_t n, float eps);

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
    size_t rest = n - i; // as a vector too: the compiler's code for a loop rounds in another way where arrays are close
    if (!rest) continue;
    vf v = (load_part(x + i, rest, 0.0f) - splat(mean)) * splat(scale);
    if (w) v *= load_part(w + i, rest, 0.0f);
    if (b) v += load_part(b + i, rest, 0.0f);
    store_part(y + i, rest, v);
  }
}

// With normal = (x - mean) r, r = 1 / sqrt(var + eps), h = g w:  dx = r (h - mean(h) - normal mean(h normal))
void tl_layer_norm_dx_f32(float *dx, float *stats, const float *g, const float *x, const float *w, size_t rows, size_t n,
                          float eps) {
  for (; rows--; x += n, g += n, dx += n, stats += 2) {
    float mean = total(x, n) / (float)n;
    float r = 1.0f / __builtin_sqrtf(squared_distance(x, mean, n) / (float)n + eps);
    vf acc = {0}, acc_normal = {0};
    float h_sum = 0.0f, h_normal_sum = 0.0f;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      vf normal = (load(x + i) - splat(mean)) * splat(r), h = w ? load(g + i) * load(w + i) : load(g + i);
      acc += h;
      acc_normal = fma(h, normal, acc_normal);
    }
    for (; i < n; i++) {
      float normal = (x[i] - mean) * r, h = w ? g[i] * w[i] : g[i];
      h_sum += h;
      h_normal_sum += h * normal;
    }
    float h_mean = (sum(acc) + h_sum) / (float)n, h_normal_mean = (sum(acc_normal) + h_normal_sum) / (float)n;
    for (i = 0; i + LANES <= n; i += LANES) {
      vf normal = (load(x + i) - splat(mean)) * splat(r), h = w ? load(g + i) * load(w + i) : load(g + i);
      store(dx + i, splat(r) * (h - splat(h_mean) - normal * splat(h_normal_mean)));
    }
    for (; i < n; i++) {
      float normal = (x[i] - mean) * r, h = w ? g[i] * w[i] : g[i];
      dx[i] = r * (h - h_mean - normal * h_normal_mean);
    }
    stats[0] = mean, stats[1] = r;
  }
}

void tl_layer_norm_dw_f32(float *dw, float *db, const float *g, const float *x, const float *stats, size_t first, size_t last,
                          size_t rows, size_t n) {
  for (; rows--; x += n, g += n, stats += 2) {
    size_t i = first;
    for (; i + LANES <= last; i += LANES) {
      vf gradient = load(g + i), normal = (load(x + i) - splat(stats[0])) * splat(stats[1]);
      store(dw + i, fma(gradient, normal, load(dw + i)));
      store(db + i, load(db + i) + gradient);
    }
    for (; i < last; i++) {
      dw[i] += g[i] * ((x[i] - stats[0]) * stats[1]);
      db[i] += g[i];
    }
  }
}

// Both for a few rows at a time, which a cache holds for the second.
void tl_layer_norm_backward_f32(float *dx, float *dw, float *db, const float *g, const float *x, const float *w, size_t rows,
                                size_t n, float eps) {
  enum { TOGETHER = 8 };
  float stats[2 * TOGETHER];
  clear(dw, n), clear(db, n);
  for (size_t r = 0; r < rows; r += TOGETHER, x += TOGETHER * n, g += TOGETHER * n, dx += TOGETHER * n) {
    size_t some = smaller(TOGETHER, rows - r);
    tl_layer_norm_dx_f32(dx, stats, g, x, w, some, n, eps);
    tl_layer_norm_dw_f32(dw, db, g, x, stats, 0, n, some, n);
  }
}
