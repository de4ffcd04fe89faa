// y = x @ wᵀ + bias with weights in GGUF's Q6_K; contract in quantized_linear.h.
//   block   256 weights d s (q - 32), with s for 16 weights each:  two runs of 64 bytes with the lower four bits of 128 q
//           each, 64 weights in the low nibbles and the next 64 in the high ones;  two runs of 32 bytes with the upper two
//           bits of 128 q each, 32 weights in the lowest bits and so on;  int8 s[16], float16 d
enum { UNIT = 256, UNIT_BYTES = 210, HALVES = 2, OFFSET = 32, HAS_MINIMA = 0 };
#include "quantized_linear.h"
#include "packed_scales.h"

static inline unit_scales scales_of(const unsigned char *w) {
  return scales_of_16(*(const sixteen_signed *)(w + 192), half_at(w + 208));
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  codes low = shifted(*(const codes *)(w + block / 4 * 64 + block % 2 * BLOCK), block % 4 / 2 * 4) & 15;
  codes high = shifted(*(const codes *)(w + 128 + block / 4 * BLOCK), block % 4 * 2) & 3;
  return low | high << 4;
}

QUANTIZED_LINEAR(tl_linear_q6_k)
