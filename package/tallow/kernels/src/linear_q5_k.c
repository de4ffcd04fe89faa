// y = x @ wᵀ + bias with weights in GGUF's Q5_K; contract in quantized_linear.h.
//   block   256 weights as Q4_K, with 32 bytes before the runs: bit g of byte i is the highest of q[32 g + i]
enum { UNIT = 256, UNIT_BYTES = 176, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1 };
#include "quantized_linear.h"
#include "packed_scales.h"

static inline unit_scales scales_of(const unsigned char *w) { return scales_of_32(w); }

static inline codes codes_of(const unsigned char *w, size_t block) {
  codes low = shifted(*(const codes *)(w + 48 + block / 2 * BLOCK), block % 2 * 4) & 15;
  return low | (shifted(*(const codes *)(w + 16), block) & 1) << 4;
}

QUANTIZED_LINEAR(tl_linear_q5_k)
