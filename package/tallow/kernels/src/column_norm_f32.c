// tl_column_moments_f32           mean[c] of a column, spread[c] = Σ_r (x[r, c] - mean[c])²
// tl_column_affine_f32            y[r, c] = (x[r, c] - centre[c]) * scale[c] + shift[c]
// tl_column_moments_backward_f32  total[c] = Σ_r g[r, c],  along[c] = Σ_r g[r, c] (x[r, c] - centre[c])
// tl_column_affine_backward_f32   dx[r, c] = g[r, c] * by_g[c] + (x[r, c] - centre[c]) * by_x[c] + shift[c]
//   layout  x, y, g, dx (rows, n) row-major, contiguous; all other arrays (n,)
//   range   of the moments: columns from `first` to `last`; calls for different ranges write to different memory, and may run
//           concurrently. Of the others: rows
//   align   none needed       length  any rows, n ≥ 1
//   alias   y may be x, and dx may be g; any other overlap is undefined
//   error   mean, total ≤ (64 + rows / 64) ulp of the mean and sum of magnitudes; spread and along likewise, plus the
//           rounding error of the mean
//
// As channel_norm_f32.c for channels with one position in each sample.
#include "vec.h"

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

static inline __attribute__((always_inline)) void moments(float *mean, float *spread, const float *x, size_t rows, size_t n,
                                                          size_t width, int vectors) {
  vf centre[VECTORS] = {0};
  sums all = add_up(x, x, centre, centre, rows, n, width, vectors, 0);
  EACH centre[v] = all.total[v] / splat((float)rows);
  all = add_up(x, x, centre, centre, rows, n, width, vectors, 1);
  EACH STORE(mean, centre[v]), STORE(spread, all.along[v]);
}

static inline __attribute__((always_inline)) void moments_backward(float *total, float *along, const float *g, const float *x,
                                                                   const float *centre, size_t rows, size_t n, size_t width,
                                                                   int vectors) {
  vf from[VECTORS], zero[VECTORS] = {0};
  EACH from[v] = LOAD(centre);
  sums all = add_up(g, x, zero, from, rows, n, width, vectors, 1);
  EACH STORE(total, all.total[v]), STORE(along, all.along[v]);
}

EXPORT void tl_column_moments_f32(float *mean, float *spread, const float *x, size_t rows, size_t first, size_t last,
                                  size_t n) {
  size_t c = first;
  for (; c + VECTORS * LANES <= last; c += VECTORS * LANES)
    moments(mean + c, spread + c, x + c, rows, n, VECTORS * LANES, VECTORS);
  for (; c < last; c += LANES) moments(mean + c, spread + c, x + c, rows, n, smaller(last - c, LANES), 1);
}

EXPORT void tl_column_moments_backward_f32(float *total, float *along, const float *g, const float *x, const float *centre,
                                           size_t rows, size_t first, size_t last, size_t n) {
  size_t c = first;
  for (; c + VECTORS * LANES <= last; c += VECTORS * LANES)
    moments_backward(total + c, along + c, g + c, x + c, centre + c, rows, n, VECTORS * LANES, VECTORS);
  for (; c < last; c += LANES)
    moments_backward(total + c, along + c, g + c, x + c, centre + c, rows, n, smaller(last - c, LANES), 1);
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
