// y = x @ wᵀ + bias with w in blocks of GGUF and rounded rows of x; the integer products are exact
//
// The body of the kernels tl_linear_q* and tl_interleaved_q*. The file that includes this defines
//   UNIT, UNIT_BYTES   weights and bytes of a block of the format: 32 weights, or 256
//   HALVES             scales for 32 weights: 1, or 2 for 16 each
//   OFFSET             subtracted from each code, a power of two or 0
//   HAS_MINIMA         whether weights are scale · code - minimum; not with an offset
//   HALF_PLACE         where a block has a float16 apart from its 32-bit words, see interleaved.h
// and functions that read scales and codes: of interleaved blocks where the target has AVX2 (INTERLEAVES), in which case w is
// interleaved first if it is not; of rows as they lie in the file elsewhere. tl_interleaved_q* takes interleaved blocks.
//
//   layout  x m rounded rows; w (n, k / UNIT · UNIT_BYTES) contiguous bytes; bias (n,), may be null; y (m, n) with rows
//           y_row apart
//   align   x and y at addresses for float, w none needed     length  any m, n; k a multiple of UNIT; k = 0 gives the bias
//   alias   y overlaps nothing
//   error   ≤ (k / 32 + 16) ulp of Σ|x'||w|, x' = scale · code; with minima of Σ|x'|(|scale · code| + |minimum|)
//           ≤ Σ|w| 0.50001 max|x| / 127 more for each block of x compared with x itself
//   special a scale NaN in a row of x makes that row of y NaN; scales of w that are infinite or NaN give the IEEE result
#include "quantized/interleaved.h"

enum { UNIT_BLOCKS = UNIT / BLOCK };

#if INTERLEAVES
#include "quantized/interleaved_linear.h"

#define QUANTIZED_LINEAR(FORMAT)                                                                                         \
  EXPORT void tl_linear_##FORMAT(float *y, const unsigned char *x, const unsigned char *w, const float *bias, size_t m,  \
                                 size_t k, size_t n, size_t y_row) {                                                     \
    quantized_linear(y, x, w, bias, m, k, n, y_row, 0);                                                                  \
  }                                                                                                                      \
  EXPORT void tl_interleaved_##FORMAT(float *y, const unsigned char *x, const unsigned char *w, const float *bias,       \
                                      size_t m, size_t k, size_t n, size_t y_row) {                                      \
    quantized_linear(y, x, w, bias, m, k, n, y_row, 1);                                                                  \
  }

#else
#include "quantized/quantized_rows.h"

#define QUANTIZED_LINEAR(FORMAT)                                                                                         \
  EXPORT void tl_linear_##FORMAT(float *y, const unsigned char *x, const unsigned char *w, const float *bias, size_t m,  \
                                 size_t k, size_t n, size_t y_row) {                                                     \
    quantized_linear(y, x, w, bias, m, k, n, y_row);                                                                     \
  }

#endif
