// Sums of a row's elements, and of their squared distances from the mean, for normalization.

#ifndef TALLOW_MOMENTS_H
#define TALLOW_MOMENTS_H

#include "runtime/vec.h"

static inline float total(const float *x, size_t n) {
  vf acc[4] = {0};
  size_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (size_t u = 0; u < 4; u++) acc[u] += load(x + i + u * LANES);
  for (; i + LANES <= n; i += LANES) acc[0] += load(x + i);
  float tail = 0.0f;
  for (; i < n; i++) tail += x[i];
  return sum((acc[0] + acc[1]) + (acc[2] + acc[3])) + tail;
}

static inline float squared_distance(const float *x, float mean, size_t n) {
  vf acc[4] = {0}, m = splat(mean);
  size_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES)
    for (size_t u = 0; u < 4; u++) {
      vf d = load(x + i + u * LANES) - m;
      acc[u] = fma(d, d, acc[u]);
    }
  for (; i + LANES <= n; i += LANES) {
    vf d = load(x + i) - m;
    acc[0] = fma(d, d, acc[0]);
  }
  float tail = 0.0f;
  for (; i < n; i++) tail += (x[i] - mean) * (x[i] - mean);
  return sum((acc[0] + acc[1]) + (acc[2] + acc[3])) + tail;
}

#endif
