// y = x @ wᵀ + bias with IEEE 754 float16 weights: contract in linear.h. Subnormals are exact, NaN and infinities pass.
//
// Where the target has no conversion: the bits of |w| moved to float32's place are |w| / 2^112, subnormals too, so one
// exact product mends the exponent; only an exponent of all ones (infinity, NaN) has to be set by hand.
#define WEIGHT uint16_t
#include "vec.h"

static inline vf widen(const uint16_t *p) {
#if defined __F16C__
  typedef _Float16 half __attribute__((vector_size(2 * LANES), aligned(2)));
  return __builtin_convertvector(*(const half *)p, vf);
#else
  vi bits = load_u16(p), magnitude = (bits & 0x7fff) << 13;
  vi special = (magnitude >= (0x7c00 << 13)) & 0x7f800000;
  vf value = (vf)magnitude * splat(0x1p112f);
  return (vf)((vi)value | special | (bits & 0x8000) << 16);
#endif
}

static inline float widen_one(uint16_t w) {
  uint16_t lanes[LANES] = {w};
  return widen(lanes)[0];
}

#include "linear.h"

void tl_linear_f16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                   ptrdiff_t w_row) {
  linear(y, x, w, bias, m, k, n, w_row);
}
