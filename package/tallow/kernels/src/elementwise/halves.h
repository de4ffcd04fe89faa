// LANES weights in half precision as float32: subnormals are exact, NaN and infinities are kept.

#ifndef TALLOW_HALVES_H
#define TALLOW_HALVES_H

#include "runtime/vec.h"

// IEEE 754 float16. If the target has no conversion instruction: the bits of |w|, shifted to their position in a float32,
// represent |w| / 2^112, including subnormals, so one exact product corrects the exponent; only an exponent of all ones
// (infinity, NaN) is set separately.
static inline vf widen_f16(const uint16_t *p) {
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

// bfloat16: the upper half of a float32.
static inline vf widen_bf16(const uint16_t *p) { return (vf)(load_u16(p) << 16); }

static inline float widen_one_f16(uint16_t w) {
  uint16_t lanes[LANES] = {w};
  return widen_f16(lanes)[0];
}

static inline float widen_one_bf16(uint16_t w) {
  union { uint32_t bits; float value; } as = {(uint32_t)w << 16};
  return as.value;
}

#endif
