// Round rows of x to int8, in blocks of 32 with a scale each; the layout of a rounded row is in quantized.h.
//   layout  x (m, k) contiguous; rounded m rows of tl_rounded_bytes(k) bytes
//   align   rounded at an address for float     length  any m; k a multiple of 32
//   alias   nothing overlaps
//   special a block with NaN or an infinity gets the scale NaN; one whose elements are all below 2^-100 in magnitude
//           becomes zeros
//   error   |x - scale · code| ≤ 0.50001 scale; code = x · (127 / max|x|) rounded to the nearest, ties to even
#include "quantized/quantized.h"

EXPORT size_t tl_rounded_bytes(size_t k) { return rounded_bytes(k); }

static inline ints magnitude_bits(floats v) { return (ints)v & 0x7fffffff; }

static inline ints larger(ints a, ints b) { return __builtin_elementwise_max(a, b); }

static inline float largest_magnitude(const floats *x) { // as integers, the bits of NaN are larger than all others
  ints most = magnitude_bits(x[0]);
#pragma clang loop unroll(full)
  for (int u = 1; u < BLOCK / WIDE; u++) most = larger(most, magnitude_bits(x[u]));
  most = larger(most, __builtin_shufflevector(most, most, 4, 5, 6, 7, 0, 1, 2, 3));
  most = larger(most, __builtin_shufflevector(most, most, 2, 3, 0, 1, 6, 7, 4, 5));
  most = larger(most, __builtin_shufflevector(most, most, 1, 0, 3, 2, 5, 4, 7, 6));
  union {
    int32_t bits;
    float value;
  } result = {most[0]};
  return result.value;
}

// The sums of a and of b, in elements 0 and 4.
static inline ints totals(ints a, ints b) {
  ints v = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
  return v + __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
}

static inline void store_codes(rounded row, size_t at, ints code) {
  ints sign = code >> 31;
  if (SPLIT_SIGNS) *(eight_signs *)(row.signs + at) = __builtin_convertvector(sign, eight_signs);
  *(eight_cells *)(row.codes + at) = __builtin_convertvector(SPLIT_SIGNS ? (code ^ sign) - sign : code, eight_cells);
}

EXPORT void tl_round_rows_f32(unsigned char *rounded_rows, const float *x, size_t m, size_t k) {
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
        ints code = is_finite ? (ints)(in[u] * inverse + magic) - 0x4b400000 : (ints){0}; // not fused
        store_codes(row, b * BLOCK + (size_t)u * WIDE, code);
        half[u / 2] += code, negative[u / 2] += code & code >> 31;
      }
      scales[b] = !is_finite ? __builtin_nanf("") : vanishes ? 0.0f : most / 127.0f;
      ints of = totals(half[0], half[1]), below = SPLIT_SIGNS ? totals(negative[0], negative[1]) : of;
      int32_t sums[3] = {of[0], of[4], of[0] + of[4]}, corrections[3] = {below[0], below[4], below[0] + below[4]};
      for (int h = 0; h < 3; h++) {
        ((float *)row.sums[h])[b] = (float)sums[h];
        if (HAS_CORRECTIONS) ((int32_t *)row.corrections[h])[b] = -corrections[h];
      }
    }
  }
}
