// y = x @ wᵀ + bias with IEEE 754 float16 weights; contract in linear.h. Subnormals are exact, NaN and infinities are
// kept.
//
// If the target has no conversion instruction: the bits of |w|, shifted to their position in a float32, represent |w| /
// 2^112, including subnormals, so one exact product corrects the exponent; only an exponent of all ones (infinity, NaN)
// is set separately.
#define WEIGHT uint16_t
#include "vec.h"

static inline vf widen(const uint16_t *p) {
#if defined __F16C__
  typedef _Float16 half __attribute__((vector_size(2 * LANES), aligned(2)));
  return __builtin_convertvector(*(const half *)p, vf);
#else
  // Sign-extended, so that one shift also moves the sign bit; the mask clears the copies of the sign in between.
  vi bits = load_s16(p) << 13 & (int32_t)0x8fffe000;
  vi special = ((bits & 0x0f800000) == 0x0f800000) & 0x7f800000;
  return (vf)((vi)((vf)bits * splat(0x1p112f)) | special);
#endif
}

static inline float widen_one(uint16_t w) {
  uint16_t lanes[LANES] = {w};
  return widen(lanes)[0];
}

#include "linear.h"

void tl_widen_f16(float *y, const uint16_t *x, size_t n) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) store(y + i, widen(x + i));
  for (; i < n; i++) y[i] = widen_one(x[i]);
}

void tl_linear_f16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                   ptrdiff_t w_row, size_t y_row) {
  linear(y, x, w, bias, m, k, n, w_row, y_row);
}
