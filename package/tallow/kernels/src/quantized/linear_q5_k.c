// y = x @ wᵀ + bias with weights in GGUF's Q5_K; contract in quantized_linear.h.
//   block   256 weights as Q4_K, with 32 bytes before the runs: bit g of byte i is the highest of q[32 g + i]
#include "quantized/interleaved.h"

enum { UNIT = 256, UNIT_BYTES = 176, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1, HALF_PLACE = NO_HALF };
#include "quantized/quantized_linear.h"
#include "quantized/packed_scales.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  interleaved_scales_of_32(s, w, first);
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  column_words low = w[12 + block / 2 * GROUPS + group] >> (uint32_t)(block % 2 * 4) & 0x0f0f0f0f;
  return low | (w[4 + group] >> (uint32_t)block & 0x01010101) << 4;
}

#else

static inline run_scales scales_of(const unsigned char *w, size_t blocks) {
  (void)blocks; // all of the unit
  return scales_of_32(w);
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  codes low = shifted(*(const codes *)(w + 48 + block / 2 * BLOCK), (int)block % 2 * 4) & 15;
  return low | (shifted(*(const codes *)(w + 16), (int)block - 4) & 1 << 4);
}

#endif

QUANTIZED_LINEAR(q5_k)
