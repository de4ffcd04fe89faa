// y = x with each pair (p, q) of a head rotated by its angle:  p cos - q sin,  p sin + q cos      RoPE, arXiv:2104.09864
//   layout  x, y (lead, t, k) contiguous; cos, sin (t, k / 2) contiguous
//           pair i is elements 2i, 2i + 1 if interleaved (llama2.c), else i, i + k / 2 (Hugging Face)
//   align   none needed       length  any; k even
//   alias   y may be x; any other overlap is undefined
//   error   ≤ 2 ulp of |p| + |q|
#include "runtime/kernels.h"

static inline void rotate_halves(float *y, const float *x, const float *cos, const float *sin, size_t half) {
  size_t i = 0;
  for (; i + LANES <= half; i += LANES) {
    vf p = load(x + i), q = load(x + half + i), c = load(cos + i), s = load(sin + i);
    store(y + i, p * c - q * s);
    store(y + half + i, p * s + q * c);
  }
  for (; i < half; i++) {
    float p = x[i], q = x[half + i];
    y[i] = p * cos[i] - q * sin[i];
    y[half + i] = p * sin[i] + q * cos[i];
  }
}

static inline void rotate_neighbours(float *y, const float *x, const float *cos, const float *sin, size_t half) {
  for (size_t i = 0; i < half; i++) {
    float p = x[2 * i], q = x[2 * i + 1];
    y[2 * i] = p * cos[i] - q * sin[i];
    y[2 * i + 1] = p * sin[i] + q * cos[i];
  }
}

void tl_rotary_f32(float *y, const float *x, const float *cos, const float *sin, size_t lead, size_t t, size_t k,
                   int interleaved) {
  size_t half = k / 2;
  for (; lead--;)
    for (size_t i = 0; i < t; i++, x += k, y += k)
      (interleaved ? rotate_neighbours : rotate_halves)(y, x, cos + i * half, sin + i * half, half);
}
