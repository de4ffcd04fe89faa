// Round rows to int8 with a scale each, and widen them; the array code is kernels/quantized/int8_rows.py.
//   layout  x (rows, n), codes (rows, n), scales (rows,), all contiguous
//   align   none needed       length  any
//   alias   nothing overlaps
//   special a row with NaN or an infinity gets the scale NaN and codes 0; a row of zeros the scale 0
//   error   |x - scale · code| ≤ 0.50001 scale; scale = max|x| / 127, code = x / scale rounded to the nearest, ties to even
#include "runtime/kernels.h"

typedef union {
  float value;
  int32_t bits;
} word;

static float largest_magnitude(const float *x, size_t n) { // as integers, the bits of NaN are larger than all others
  word most = {0};
  for (size_t i = 0; i < n; i++) {
    word w = {x[i]};
    w.bits &= 0x7fffffff;
    most.bits = w.bits > most.bits ? w.bits : most.bits;
  }
  return most.value;
}

void tl_round_int8_rows(int8_t *codes, float *scales, const float *x, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; r++, x += n, codes += n) {
    float most = largest_magnitude(x, n), scale = most / 127.0f, divisor = scale > 0.0f ? scale : 1.0f;
    int is_finite = most <= 3.40282347e38f;
    scales[r] = is_finite ? scale : __builtin_nanf("");
    for (size_t i = 0; i < n; i++) {
      word w = {x[i] / divisor + 12582912.0f}; // adding 1.5 * 2^23 rounds to an integer
      int32_t code = w.bits - 0x4b400000;
      code = code > 127 ? 127 : code < -127 ? -127 : code; // the scale of subnormal numbers is inexact
      codes[i] = (int8_t)(is_finite ? code : 0);
    }
  }
}

void tl_widen_int8_rows(float *y, const int8_t *codes, const float *scales, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; r++, y += n, codes += n)
    for (size_t i = 0; i < n; i++) y[i] = (float)codes[i] * scales[r];
}
