// tl_softmax_columns_f32               softmax along the middle axis of x (outer, n, inner)
// tl_log_softmax_columns_f32           its logarithm
// tl_softmax_columns_backward_f32      dx = y ⊙ (g - Σ_j g_j y_j)
// tl_log_softmax_columns_backward_f32  dx = g - exp(y) Σ_j g_j
//
//   layout  x, y, g, dx (outer, n, inner) contiguous
//   range   columns from `first` to `last`, numbered 0 to outer · inner: calls for different ranges write to different
//           memory, and may run concurrently; a column has the same result in any range
//   align   none needed       length  any n, inner ≥ 1
//   alias   the result may be an operand; any other overlap is undefined
//   special as softmax_f32.c
//   error   softmax ≤ 2e-6 + n 6e-8 relative to float64, for weights that are not subnormal; its logarithm the same plus
//           1 ulp of x - max; gradients ≤ n ulp of |g| + Σ |g| times the weight
#include "runtime/vec.h"

enum { VECTORS = 4 }; // of adjacent columns, as long as there are as many

#define EACH for (int v = 0; v < vectors; v++)

// One row of `width` columns in `vectors` vectors, of which the only one may be padded.
static inline void load_row(vf *to, const float *from, size_t width, int vectors) {
  EACH to[v] = width >= LANES ? load(from + v * LANES) : load_part(from, width, 0.0f);
}

static inline void store_row(float *to, const vf *from, size_t width, int vectors) {
  if (width < LANES) return store_part(to, width, from[0]);
  EACH store(to + v * LANES, from[v]);
}

// ln x for x ≥ 1: k ln 2 + ln(1 + f), x = 2^k (1 + f), the latter f - f²/2 + f³ P(f), P fitted by weighted least squares
// with a relative error of 7e-9 in exact arithmetic. NaN stays NaN.
static inline vf log_above_1(vf x) {
  vi shifted = (vi)x - 0x3f3504f3, k = shifted >> 23; // √½ ≤ 1 + f < √2
  vf f = (vf)((vi)x - (k << 23)) - splat(1.0f), whole = __builtin_convertvector(k, vf);
  vf p = splat(-0.073628679f);
  p = fma(p, f, splat(0.12620327f));
  p = fma(p, f, splat(-0.13202104f));
  p = fma(p, f, splat(0.14227115f));
  p = fma(p, f, splat(-0.16621371f));
  p = fma(p, f, splat(0.19999826f));
  p = fma(p, f, splat(-0.25000852f));
  p = fma(p, f, splat(0.33333355f));
  vf square = f * f, small = fma(square * f, p, square * splat(-0.5f)) + f;
  return (vf)((vi)fma(whole, splat(0.69314718f), small) | (x != x));
}

static inline __attribute__((always_inline)) void softmax(float *y, const float *x, size_t n, size_t inner, size_t width,
                                                          int vectors, int logarithm) {
  vf top[VECTORS], acc[VECTORS] = {0}, row[VECTORS];
  load_row(top, x, width, vectors);
#pragma clang loop unroll(disable)
  for (size_t p = 1; p < n; p++) {
    load_row(row, x + p * inner, width, vectors);
    EACH top[v] = max(row[v], top[v]);
  }
#pragma clang loop unroll(disable)
  for (size_t p = 0; p < n; p++) {
    load_row(row, x + p * inner, width, vectors);
    EACH row[v] = exp_below_1(row[v] - top[v]), acc[v] += row[v];
    if (!logarithm) store_row(y + p * inner, row, width, vectors);
  }
  EACH acc[v] = logarithm ? log_above_1(acc[v]) : splat(1.0f) / acc[v];
#pragma clang loop unroll(disable)
  for (size_t p = 0; p < n; p++) {
    load_row(row, (logarithm ? x : y) + p * inner, width, vectors);
    EACH row[v] = logarithm ? (row[v] - top[v]) - acc[v] : row[v] * acc[v];
    store_row(y + p * inner, row, width, vectors);
  }
}

static inline __attribute__((always_inline)) void softmax_backward(float *dx, const float *g, const float *y, size_t n,
                                                                   size_t inner, size_t width, int vectors, int logarithm) {
  vf acc[VECTORS] = {0}, row[VECTORS], of_y[VECTORS];
#pragma clang loop unroll(disable)
  for (size_t p = 0; p < n; p++) {
    load_row(row, g + p * inner, width, vectors);
    if (!logarithm) load_row(of_y, y + p * inner, width, vectors);
    EACH acc[v] = logarithm ? acc[v] + row[v] : fma(row[v], of_y[v], acc[v]);
  }
#pragma clang loop unroll(disable)
  for (size_t p = 0; p < n; p++) {
    load_row(row, g + p * inner, width, vectors);
    load_row(of_y, y + p * inner, width, vectors);
    EACH row[v] = logarithm ? fma(exp_below_1(of_y[v]), -acc[v], row[v]) : of_y[v] * (row[v] - acc[v]);
    store_row(dx + p * inner, row, width, vectors);
  }
}

// Compute all columns of the range: VECTORS vectors at a time, then one, then a part of one.
#define IN_BLOCKS(COMPUTE, y, a, b)                                                                                      \
  for (size_t c = first, width; c < last; c += width) {                                                                  \
    size_t at = c / inner * n * inner + c % inner, left = smaller(last - c, inner - c % inner);                          \
    width = left >= VECTORS * LANES ? VECTORS * LANES : smaller(left, LANES);                                            \
    if (width == VECTORS * LANES)                                                                                        \
      COMPUTE(y + at, a + at, b + at, n, inner, VECTORS * LANES, VECTORS);                                               \
    else if (width == LANES)                                                                                             \
      COMPUTE(y + at, a + at, b + at, n, inner, LANES, 1);                                                               \
    else                                                                                                                 \
      COMPUTE(y + at, a + at, b + at, n, inner, width, 1);                                                               \
  }

#define SOFTMAX(y, a, b, n, inner, width, vectors) softmax(y, a, n, inner, width, vectors, 0)
#define LOG_SOFTMAX(y, a, b, n, inner, width, vectors) softmax(y, a, n, inner, width, vectors, 1)
#define BACKWARD(y, a, b, n, inner, width, vectors) softmax_backward(y, a, b, n, inner, width, vectors, 0)
#define LOG_BACKWARD(y, a, b, n, inner, width, vectors) softmax_backward(y, a, b, n, inner, width, vectors, 1)

EXPORT void tl_softmax_columns_f32(float *y, const float *x, size_t first, size_t last, size_t n, size_t inner) {
  IN_BLOCKS(SOFTMAX, y, x, x)
}

EXPORT void tl_log_softmax_columns_f32(float *y, const float *x, size_t first, size_t last, size_t n, size_t inner) {
  IN_BLOCKS(LOG_SOFTMAX, y, x, x)
}

EXPORT void tl_softmax_columns_backward_f32(float *dx, const float *g, const float *y, size_t first, size_t last, size_t n,
                                            size_t inner) {
  IN_BLOCKS(BACKWARD, dx, g, y)
}

EXPORT void tl_log_softmax_columns_backward_f32(float *dx, const float *g, const float *y, size_t first, size_t last, size_t n,
                                                size_t inner) {
  IN_BLOCKS(LOG_BACKWARD, dx, g, y)
}
