// tl_running_sum_f32   y[o, i, j] = Σ_{k ≤ i} x[o, k, j], or with `reverse` Σ_{k ≥ i} x[o, k, j]
//   layout  x, y (outer, n, inner) row-major, contiguous
//   align   none needed       length  any n, inner ≥ 1
//   alias   y may be x; any other overlap is undefined
//   error   elements are added one after the other: the bits of NumPy's
#include "runtime/vec.h"

EXPORT void tl_running_sum_f32(float *y, const float *x, size_t outer, size_t n, size_t inner, size_t reverse) {
  if (!n) return; // there is no last element to begin with
  const ptrdiff_t step = reverse ? -(ptrdiff_t)inner : (ptrdiff_t)inner;
  for (; outer--; x += n * inner, y += n * inner) {
    const float *from = reverse ? x + (n - 1) * inner : x;
    float *to = y + (from - x), sum = -0.0f; // which leaves the first element as it is
    for (size_t i = 0; i < n; i++, from += step, to += step) {
      size_t j = 0;
      if (i)
        for (; j + LANES <= inner; j += LANES) store(to + j, load(to + j - step) + load(from + j));
      if (inner == 1)
        *to = sum += *from;
      else
#pragma clang loop unroll(disable) vectorize(disable)
        for (; j < inner; j++) to[j] = i ? to[(ptrdiff_t)j - step] + from[j] : from[j];
    }
  }
}
