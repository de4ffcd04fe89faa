// tl_narrow_f32   y[i] = x[i] rounded to float16, or to bfloat16, as `format` says
//   layout  x, y (n,) contiguous      align  none needed       length  any n ≥ 0
//   alias   nothing overlaps
//   special too large numbers become infinite; NaN becomes the quiet NaN without a sign
//   error   rounded to the nearest, ties to even, subnormal results too
#include "runtime/kernels.h"

// If the target has no conversion instruction: |x| / 2^112 has the bits of a float16 at its top, see linear_f16.c. A subnormal float16 is a multiple of 2^-24, as are
// floats from 0.5 to 1: a sum with 0.5 rounds to it.
static inline vi narrowed(vf x, int32_t format) {
  vi sign = (vi)x >> 16 & 0x8000, size = (vi)x & INT32_MAX, is_nan = size > 0x7f800000;
  if (format == BFLOAT16) return select_bits(is_nan, (vi){0} + 0x7fc0, sign | (size + 0x7fff + (size >> 16 & 1)) >> 16);
#if defined __F16C__
  typedef _Float16 half __attribute__((vector_size(2 * LANES)));
  return select_bits(is_nan, (vi){0} + 0x7e00, __builtin_convertvector((vu16)__builtin_convertvector(x, half), vi));
#else
  vi bits = (vi)((vf)size * splat(0x1p-112f)), rounded = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
  rounded = select_bits(rounded > 0x7c00, (vi){0} + 0x7c00, rounded);
  vi subnormal = (vi)((vf)size + splat(0.5f)) - 0x3f000000;
  return select_bits(is_nan, (vi){0} + 0x7e00, sign | select_bits(size < 0x38800000, subnormal, rounded));
#endif
}

static __attribute__((always_inline)) inline void narrow(uint16_t *y, const float *x, size_t n, int32_t format) {
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) *(vu16 *)(y + i) = __builtin_convertvector(narrowed(load(x + i), format), vu16);
  vi last = narrowed(load_part(x + i, n - i, 0.0f), format);
  for (size_t lane = 0; i < n; i++, lane++) y[i] = (uint16_t)last[lane];
}

void tl_narrow_f32(uint16_t *y, const float *x, size_t n, int32_t format) {
  if (format == FLOAT16)
    narrow(y, x, n, FLOAT16);
  else
    narrow(y, x, n, BFLOAT16);
}
