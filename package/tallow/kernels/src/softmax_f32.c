// y[r, :] = exp(x[r, :] - max) / Σ exp(x[r, :] - max)
//   layout  x, y (rows, n) row-major, rows contiguous
//   align   none needed       length  any n ≥ 1
//   alias   y may be x; any other overlap is undefined
//   special NaN or +inf anywhere in a row, or only -inf, makes the row NaN; -inf beside a finite value gives exactly 0
//   error   ≤ 2e-6 relative to float64 for n ≤ 65536, for weights that are no subnormals
#include "kernels.h"

void tl_softmax_f32(float *y, const float *x, size_t rows, size_t n) {
  const float low = -__builtin_inff();
  for (; rows--; x += n, y += n) {
    size_t whole = n / LANES * LANES, rest = n - whole;
    vf m = splat(low);
    for (size_t i = 0; i < whole; i += LANES) m = max(load(x + i), m);
    vf last = load_part(x + whole, rest, low);
    vf top = splat(largest(max(last, m)));

    vf acc = {0};
    for (size_t i = 0; i < whole; i += LANES) {
      vf e = exp(load(x + i) - top);
      acc += e;
      store(y + i, e);
    }
    if (rest) { // not for a whole row: -inf - -inf in the filling would be NaN
      vf e = exp(last - top);
      store_part(y + whole, rest, e);
      for (size_t i = 0; i < rest; i++) acc[0] += e[i];
    }

    float inverse = 1.0f / sum(acc);
    for (size_t i = 0; i < whole; i += LANES) store(y + i, load(y + i) * splat(inverse));
    for (size_t i = whole; i < n; i++) y[i] *= inverse;
  }
}
