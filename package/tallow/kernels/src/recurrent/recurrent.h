// What the kernels of recurrent layers share.

#ifndef TALLOW_RECURRENT_H
#define TALLOW_RECURRENT_H

#include "runtime/vec.h"

// Quicker than sigmoid, and as accurate but for results below 1e-37.
static inline vf quick_sigmoid(vf x) {
  vi is_nan = x != x; // saved first
  vf y = splat(1.0f) / (splat(1.0f) + exp_normal(clamp(-x, splat(-87.0f), splat(87.0f))));
  return (vf)((vi)y | is_nan);
}

static inline void copy(float *dst, const float *src, size_t n) {
  for (size_t i = 0; i < n; i++) dst[i] = src[i];
}

#endif
