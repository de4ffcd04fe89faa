// Round rows of x to int8, in blocks of 32 with a scale each; the layout of a rounded row is in quantized.h.
//   layout  x (m, k) contiguous; rounded m rows of tl_rounded_bytes(k) bytes
//   align   rounded at an address for float     length  any m; k a multiple of 32
//   alias   nothing overlaps
//   special a block with NaN or an infinity gets the scale NaN; one whose elements are all below 2^-100 in magnitude
//           becomes zeros
//   error   |x - scale · code| ≤ 0.50001 scale; code = x · (127 / max|x|) rounded to the nearest, ties to even
#include "quantized.h"

EXPORT size_t tl_rounded_bytes(size_t k) { return rounded_bytes(k); }

static inline ints magnitude_bits(floats v) { return (ints)v & 0x7fffffff; }

static inline float largest_magnitude(const floats *x) { // as integers, the bits of NaN are larger than all others
  ints most = magnitude_bits(x[0]);
  for (int u = 1; u < BLOCK / WIDE; u++) {
    ints bits = magnitude_bits(x[u]), greater = bits > most;
    most = (bits & greater) | (most & ~greater);
  }
  union {
    int32_t bits;
    float value;
  } result = {0};
  for (int i = 0; i < WIDE; i++) result.bits = most[i] > result.bits ? most[i] : result.bits;
  return result.value;
}

EXPORT void tl_round_rows_f32(unsigned char *rounded_rows, const float *x, size_t m, size_t k) {
  // The build fuses products and sums, which would round ties differently on some targets; an unknown zero between the
  // two prevents it.
  volatile int32_t zero = 0;
  const ints apart = (ints){0} + zero;
  const floats magic = all(12582912.0f); // adding 1.5 * 2^23 rounds to an integer
  for (size_t i = 0; i < m; i++) {
    rounded row = rounded_row(rounded_rows + i * rounded_bytes(k), k);
    cell *out = (cell *)row.codes;
    float *scales = (float *)row.scales;
    for (size_t b = 0; b < k / BLOCK; b++) {
      const floats *in = (const floats *)(x + i * k + b * BLOCK);
      float most = largest_magnitude(in);
      int is_finite = most <= 3.40282347e38f, vanishes = most < 0x1p-100f;
      floats inverse = all(is_finite && !vanishes ? 127.0f / most : 0.0f);
      for (int u = 0; u < BLOCK / WIDE; u++) {
        floats scaled = (floats)((ints)(in[u] * inverse) ^ apart);
        ints code = (ints)(scaled + magic) - 0x4b400000;
        *(eight_cells *)(out + b * BLOCK + u * WIDE) = __builtin_convertvector(is_finite ? code : (ints){0}, eight_cells);
      }
      scales[b] = !is_finite ? __builtin_nanf("") : vanishes ? 0.0f : most / 127.0f;
      ints lanes = dot_unsigned((ints){0}, (codes){0} + 1, x_codes(row, b));
      int32_t halves[2] = {lanes[0] + lanes[1] + lanes[2] + lanes[3], lanes[4] + lanes[5] + lanes[6] + lanes[7]};
      int32_t sums[3] = {halves[0], halves[1], halves[0] + halves[1]};
      for (int h = 0; h < 3; h++) {
        ((float *)row.sums[h])[b] = (float)sums[h];
        if (UNSIGNED_WEIGHTS) ((int32_t *)row.minus[h])[b] = -sums[h];
      }
    }
  }
}
