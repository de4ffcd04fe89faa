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

static inline int32_t total(ints v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

static inline void store_codes(rounded row, size_t at, ints code) {
  ints sign = code >> 31;
  if (SPLIT_SIGNS) *(eight_signs *)(row.signs + at) = __builtin_convertvector(sign, eight_signs);
  *(eight_cells *)(row.codes + at) = __builtin_convertvector(SPLIT_SIGNS ? (code ^ sign) - sign : code, eight_cells);
}

EXPORT void tl_round_rows_f32(unsigned char *rounded_rows, const float *x, size_t m, size_t k) {
  // The build fuses products and sums, which would round ties differently on some targets; an unknown zero between the
  // two prevents it.
  volatile int32_t zero = 0;
  const ints apart = (ints){0} + zero;
  const floats magic = all(12582912.0f); // adding 1.5 * 2^23 rounds to an integer
  for (size_t i = 0; i < m; i++) {
    rounded row = rounded_row(rounded_rows + i * rounded_bytes(k), k);
    float *scales = (float *)row.scales;
    for (size_t b = 0; b < k / BLOCK; b++) {
      const floats *in = (const floats *)(x + i * k + b * BLOCK);
      float most = largest_magnitude(in);
      int is_finite = most <= 3.40282347e38f, vanishes = most < 0x1p-100f;
      floats inverse = all(is_finite && !vanishes ? 127.0f / most : 0.0f);
      ints half[2] = {0}, negative[2] = {0};
      for (int u = 0; u < BLOCK / WIDE; u++) {
        floats scaled = (floats)((ints)(in[u] * inverse) ^ apart);
        ints code = is_finite ? (ints)(scaled + magic) - 0x4b400000 : (ints){0};
        store_codes(row, b * BLOCK + (size_t)u * WIDE, code);
        half[u / 2] += code, negative[u / 2] += code & code >> 31;
      }
      scales[b] = !is_finite ? __builtin_nanf("") : vanishes ? 0.0f : most / 127.0f;
      ints of[3] = {half[0], half[1], half[0] + half[1]};
      ints below[3] = {negative[0], negative[1], negative[0] + negative[1]};
      for (int h = 0; h < 3; h++) {
        ((float *)row.sums[h])[b] = (float)total(of[h]);
        if (HAS_CORRECTIONS) ((int32_t *)row.corrections[h])[b] = -total(SPLIT_SIGNS ? below[h] : of[h]);
      }
    }
  }
}
