// tl_short_convolution_f32   a causal convolution of each channel for itself, which continues an earlier one:
//                            y[t] = bias + Σ_i w[i] x[t - p + i], where the p = taps - 1 positions before x are `past`
//   layout  x, y (batch, t, channels); past (batch, p, channels); w (channels, taps); bias (channels,), which may be null; all
//           contiguous
//   range   channels from `first` to `last`: calls for different ranges write to different memory, and may run concurrently
//   in out  past becomes the last p positions
//   align   none needed       length  1 ≤ taps ≤ 8; any t
//   alias   none
//   error   ≤ taps ulp of |bias| + Σ|w||x|
#include "runtime/kernels.h"

enum { TAPS = 8 };

EXPORT void tl_short_convolution_f32(float *y, float *past, const float *x, const float *w, const float *bias, size_t first,
                                     size_t last, size_t batch, size_t t, size_t channels, size_t taps) {
  const size_t p = taps - 1;
  for (size_t from = first; from < last; from += LANES) {
    const size_t width = smaller(LANES, last - from);
    float weights[TAPS * LANES];
    clear(weights, TAPS * LANES);
#pragma clang loop unroll(disable) vectorize(disable)
    for (size_t l = 0; l < width; l++)
      for (size_t i = 0; i < taps; i++) weights[i * LANES + l] = w[(from + l) * taps + i];
    const vf start = bias ? load_up_to(bias + from, width) : splat(0.0f);
    for (size_t row = 0; row < batch; row++) {
      const float *own = x + row * t * channels + from;
      float *before = past + row * p * channels + from, *to = y + row * t * channels + from;
      for (size_t at = 0; at < t; at++) {
        vf sum = start;
        for (size_t i = 0; i < taps; i++) {
          const float *in = at + i < p ? before + (at + i) * channels : own + (at + i - p) * channels;
          sum = fma(load(weights + i * LANES), load_up_to(in, width), sum);
        }
        store_up_to(to + at * channels, width, sum);
      }
      for (size_t i = 0; i < p; i++) {
        const float *in = t + i < p ? before + (t + i) * channels : own + (t + i - p) * channels;
        store_up_to(before + i * channels, width, load_up_to(in, width));
      }
    }
  }
}
