// tl_column_moments_f32           mean[c] of a column,  var[c] = Σ_r (x[r, c] - mean[c])² / rows,
//                                 scale[c] = weight[c] / sqrt(var[c] + eps)
// tl_column_affine_f32            y[r, c] = (x[r, c] - centre[c]) * scale[c] + shift[c]
// tl_column_moments_backward_f32  db[c] = Σ_r g[r, c],  dw[c] = s Σ_r g[r, c] (x[r, c] - mean[c]),  s = 1 / sqrt(var[c] + eps),
//                                 by_g[c] = s weight[c],  by_x[c] = -by_g[c] dw[c] s / rows,  shift[c] = -by_g[c] db[c] / rows
// tl_column_affine_backward_f32   dx[r, c] = g[r, c] * by_g[c] + (x[r, c] - centre[c]) * by_x[c] + shift[c]
//   layout  x, y, g, dx (rows, n) row-major, contiguous; all other arrays (n,); weight may be NULL for ones
//   range   of the moments: columns from `first` to `last`; calls for different ranges write to different memory, and may run
//           concurrently. Of the others: rows
//   align   none needed       length  any rows, n ≥ 1
//   alias   y may be x, and dx may be g; any other overlap is undefined
//   error   mean, db ≤ (64 + rows / 64) ulp of the mean and sum of magnitudes; var and dw likewise, plus the rounding error
//           of the mean
//
// As channel_norm_f32.c for channels with one position in each sample.
#include "runtime/vec.h"

enum { VECTORS = 4, BLOCK = 64 }; // of columns at a time; rows that are summed before they are added to a larger sum

#define EACH for (int v = 0; v < vectors; v++)
#define LOAD(p) (width < LANES ? load_part(p, width, 0.0f) : load((p) + v * LANES))
#define STORE(p, value) (width < LANES ? store_part(p, width, value) : store((p) + v * LANES, value))

// Σ_r a of `width` columns in `vectors` vectors, and if `along` Σ_r (a - from_a) (b - from_b).
typedef struct {
  vf total[VECTORS], along[VECTORS];
} sums;

static inline __attribute__((always_inline)) sums add_up(const float *a, const float *b, const vf *from_a, const vf *from_b,
                                                         size_t rows, size_t n, size_t width, int vectors, int along) {
  sums all = {0};
  for (size_t r = 0; r < rows; r += BLOCK) {
    sums some = {0};
#pragma clang loop unroll(disable)
    for (size_t i = r; i < smaller(r + BLOCK, rows); i++)
      EACH {
        vf value = LOAD(a + i * n);
        some.total[v] += value;
        if (along) some.along[v] = fma(value - from_a[v], LOAD(b + i * n) - from_b[v], some.along[v]);
      }
    EACH all.total[v] += some.total[v], all.along[v] += some.along[v];
  }
  return all;
}

// A parameter of some columns; ones if there is none.
static inline vf weight_of(const float *weight, int v, size_t width) { return weight ? LOAD(weight) : splat(1.0f); }

static inline __attribute__((always_inline)) void moments(float *mean, float *var, float *scale, const float *x,
                                                          const float *weight, size_t rows, size_t n, float eps, size_t width,
                                                          int vectors) {
  vf centre[VECTORS] = {0}, count = splat((float)rows);
  sums all = add_up(x, x, centre, centre, rows, n, width, vectors, 0);
  EACH centre[v] = all.total[v] / count;
  all = add_up(x, x, centre, centre, rows, n, width, vectors, 1);
  EACH {
    vf spread = all.along[v] / count;
    STORE(mean, centre[v]), STORE(var, spread);
    STORE(scale, weight_of(weight, v, width) / __builtin_elementwise_sqrt(spread + splat(eps)));
  }
}

static inline __attribute__((always_inline)) void moments_backward(float *dw, float *db, float *by_g, float *by_x, float *shift,
                                                                   const float *g, const float *x, const float *mean,
                                                                   const float *var, const float *weight, size_t rows, size_t n,
                                                                   float eps, size_t width, int vectors) {
  vf from[VECTORS], zero[VECTORS] = {0}, count = splat((float)rows);
  EACH from[v] = LOAD(mean);
  sums all = add_up(g, x, zero, from, rows, n, width, vectors, 1);
  EACH {
    vf s = splat(1.0f) / __builtin_elementwise_sqrt(LOAD(var) + splat(eps)), along = all.along[v] * s;
    vf scale = s * weight_of(weight, v, width), mean_scale = scale / count;
    STORE(dw, along), STORE(db, all.total[v]), STORE(by_g, scale);
    STORE(by_x, -mean_scale * along * s), STORE(shift, -mean_scale * all.total[v]);
  }
}

#define WEIGHT (weight ? weight + c : weight)

EXPORT void tl_column_moments_f32(float *mean, float *var, float *scale, const float *x, const float *weight, size_t first,
                                  size_t last, size_t rows, size_t n, float eps) {
  size_t c = first;
  for (; c + VECTORS * LANES <= last; c += VECTORS * LANES)
    moments(mean + c, var + c, scale + c, x + c, WEIGHT, rows, n, eps, VECTORS * LANES, VECTORS);
  for (; c < last; c += LANES)
    moments(mean + c, var + c, scale + c, x + c, WEIGHT, rows, n, eps, smaller(last - c, LANES), 1);
}

EXPORT void tl_column_moments_backward_f32(float *dw, float *db, float *by_g, float *by_x, float *shift, const float *g,
                                           const float *x, const float *mean, const float *var, const float *weight,
                                           size_t first, size_t last, size_t rows, size_t n, float eps) {
  size_t c = first;
  for (; c + VECTORS * LANES <= last; c += VECTORS * LANES)
    moments_backward(dw + c, db + c, by_g + c, by_x + c, shift + c, g + c, x + c, mean + c, var + c, WEIGHT, rows, n, eps,
                     VECTORS * LANES, VECTORS);
  for (; c < last; c += LANES)
    moments_backward(dw + c, db + c, by_g + c, by_x + c, shift + c, g + c, x + c, mean + c, var + c, WEIGHT, rows, n, eps,
                     smaller(last - c, LANES), 1);
}

EXPORT void tl_column_affine_f32(float *y, const float *x, const float *centre, const float *scale, const float *shift,
                                 size_t rows, size_t n) {
  for (; rows--; x += n, y += n) {
    size_t c = 0;
    for (; c + LANES <= n; c += LANES) store(y + c, fma(load(x + c) - load(centre + c), load(scale + c), load(shift + c)));
    for (; c < n; c++) y[c] = (x[c] - centre[c]) * scale[c] + shift[c];
  }
}

EXPORT void tl_column_affine_backward_f32(float *dx, const float *g, const float *x, const float *centre, const float *by_g,
                                          const float *by_x, const float *shift, size_t rows, size_t n) {
  for (; rows--; x += n, g += n, dx += n) {
    size_t c = 0;
    for (; c + LANES <= n; c += LANES) {
      vf from_x = fma(load(x + c) - load(centre + c), load(by_x + c), load(shift + c));
      store(dx + c, fma(load(g + c), load(by_g + c), from_x));
    }
    for (; c < n; c++) dx[c] = g[c] * by_g[c] + (x[c] - centre[c]) * by_x[c] + shift[c];
  }
}
