// tl_selective_scan_f32   the scan of Mamba, position after position: h ← exp(step a) h + step x b;  y = Σ h c
//                                                                                     Gu & Dao 2023, arXiv:2312.00752
//   layout  x, step, y (batch, t, channels); a (channels, n); b, c (batch, t, n); state (batch, channels, n), all contiguous
//   range   channels from `first` to `last`: calls for different ranges write to different memory, and may run concurrently
//   in out  state
//   scratch tl_selective_scan_scratch(n) floats, contents irrelevant
//   align   none needed       length  any
//   alias   none
//   error   per position ≤ 8 ulp of |h| + |step x b|, and n ulp of Σ|h||c|
#include "runtime/vec.h"

EXPORT size_t tl_selective_scan_scratch(size_t n) { return 2 * n * LANES; }

// Element l of a vector is row l of `rows`, of which there are `width`; zeros for the others.
static void to_lanes_of(float *lanes, const float *rows, size_t width, size_t n) {
  clear(lanes, n * LANES);
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t l = 0; l < width; l++)
    for (size_t i = 0; i < n; i++) lanes[i * LANES + l] = rows[l * n + i];
}

EXPORT void tl_selective_scan_f32(float *y, const float *x, const float *step, const float *a, const float *b, const float *c,
                                  float *state, size_t first, size_t last, size_t batch, size_t t, size_t channels, size_t n,
                                  float *scratch) {
  float *rates = scratch, *h = rates + n * LANES;
  for (size_t from = first; from < last; from += LANES) {
    const size_t width = smaller(LANES, last - from);
    to_lanes_of(rates, a + from * n, width, n);
    for (size_t row = 0; row < batch; row++) {
      float *own = state + (row * channels + from) * n;
      to_lanes_of(h, own, width, n);
      for (size_t at = row * t; at < (row + 1) * t; at++) {
        const vf size = load_up_to(step + at * channels + from, width);
        const vf input = size * load_up_to(x + at * channels + from, width);
        vf sum = splat(0.0f);
        for (size_t i = 0; i < n; i++) {
          const vf kept = exp(size * load(rates + i * LANES)) * load(h + i * LANES);
          const vf next = fma(input, splat(b[at * n + i]), kept);
          store(h + i * LANES, next);
          sum = fma(next, splat(c[at * n + i]), sum);
        }
        store_up_to(y + at * channels + from, width, sum);
      }
#pragma clang loop unroll(disable) vectorize(disable)
      for (size_t l = 0; l < width; l++)
        for (size_t i = 0; i < n; i++) own[l * n + i] = h[i * LANES + l];
    }
  }
}
