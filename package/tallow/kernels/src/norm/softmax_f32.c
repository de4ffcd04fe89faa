// y[r, :] = exp(x[r, :] - max) / Σ exp(x[r, :] - max)
//   layout  x, y (rows, n) row-major, rows contiguous
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   special a row with NaN or +inf, or with -inf only, becomes NaN; -inf next to a finite value gives exactly 0
//   error   ≤ 2e-6 relative to float64 for n ≤ 65536, for weights that are not subnormal
#include "runtime/kernels.h"
#include "norm/moments.h"

void tl_softmax_f32(float *y, const float *x, size_t rows, size_t n) {
  for (; rows--; x += n, y += n) {
    size_t whole = n / LANES * LANES, rest = n - whole;
    vf top = splat(largest_of(x, n)), last = load_part(x + whole, rest, 0.0f);

    vf acc = {0};
    for (size_t i = 0; i < whole; i += LANES) {
      vf e = exp_below_1(load(x + i) - top);
      acc += e;
      store(y + i, e);
    }
    if (rest) { // not for a full row: -inf - -inf in the padding would be NaN
      vf e = exp_below_1(last - top);
      store_part(y + whole, rest, e);
      for (size_t i = 0; i < rest; i++) acc[0] += e[i];
    }

    float inverse = 1.0f / sum(acc);
    for (size_t i = 0; i < whole; i += LANES) store(y + i, load(y + i) * splat(inverse));
    for (size_t i = whole; i < n; i++) y[i] *= inverse;
  }
}

// dx[r, :] = y ⊙ (g - Σ_j g_j y_j) of a row, or g - exp(y) Σ_j g_j if y are logarithms
EXPORT void tl_softmax_backward_f32(float *dx, const float *g, const float *y, size_t rows, size_t n) {
  for (; rows--; dx += n, g += n, y += n) {
    vf acc[2] = {0};
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
      for (size_t u = 0; u < 2; u++) acc[u] = fma(load(g + i + u * LANES), load(y + i + u * LANES), acc[u]);
    float along = 0.0f;
    for (; i < n; i++) along += g[i] * y[i];
    along += sum(acc[0] + acc[1]);
    for (i = 0; i + LANES <= n; i += LANES) store(dx + i, load(y + i) * (load(g + i) - splat(along)));
    for (; i < n; i++) dx[i] = y[i] * (g[i] - along);
  }
}

EXPORT void tl_log_softmax_backward_f32(float *dx, const float *g, const float *y, size_t rows, size_t n) {
  for (; rows--; dx += n, g += n, y += n) {
    float of_g = -total(g, n);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) store(dx + i, fma(exp_below_1(load(y + i)), splat(of_g), load(g + i)));
    store_part(dx + i, n - i, fma(exp_below_1(load_part(y + i, n - i, 0.0f)), splat(of_g), load_part(g + i, n - i, 0.0f)));
  }
}
