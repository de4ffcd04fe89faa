// y = x @ wᵀ + bias with weights of eight or four bits in groups that share a scale; x stays float32. The array code is
// ops/weight_only_linear.py, the format kernels/quantized.py. A few rows of w at a time are widened into a cache.
//
//   layout  all contiguous but the rows of y, which are y_row apart: x (m, k), scales (n, k / group), bias (n,) or null;
//           8 bits  codes (n, k) int8
//           4 bits  codes (n, k / 2), each of a byte's halves a code plus 8, the lower half the earlier one
//   length  group divides k; with 4 bits it is even and at most UNPACKED; any m, n
//   align   none needed        alias   y overlaps nothing
//   error   as tl_linear_f32 with the weight code · scale in float32
//   scratch ROWS_AT_ONCE k floats
#include "kernels.h"

enum { ROWS_AT_ONCE = 4, UNPACKED = 1024 };

// `count` groups, whole rows.
static void widen(float *y, const int8_t *codes, const float *scales, size_t count, size_t group, int bits) {
  if (bits == 8) {
    tl_widen_int8_rows(y, codes, scales, count, group);
    return;
  }
  int8_t unpacked[UNPACKED];
  for (size_t groups; count; count -= groups, scales += groups, codes += groups * group / 2, y += groups * group) {
    groups = smaller(count, UNPACKED / group);
    for (size_t i = 0; i < groups * group / 2; i++) {
      unpacked[2 * i] = (int8_t)((codes[i] & 15) - 8);
      unpacked[2 * i + 1] = (int8_t)((codes[i] >> 4 & 15) - 8);
    }
    tl_widen_int8_rows(y, unpacked, scales, groups, group);
  }
}

EXPORT void tl_weight_only_linear(float *y, const float *x, const int8_t *codes, const float *scales, const float *bias,
                                  size_t m, size_t k, size_t n, size_t group, int bits, size_t y_row, float *scratch) {
  for (size_t j = 0; j < n; j += ROWS_AT_ONCE) {
    size_t rows = smaller(n - j, ROWS_AT_ONCE), groups = k / group;
    widen(scratch, codes + j * k * (size_t)bits / 8, scales + j * groups, rows * groups, group, bits);
    tl_linear_f32(y + j, x, scratch, bias ? bias + j : 0, m, k, rows, (ptrdiff_t)k, y_row);
  }
}
