// y = x @ wᵀ + bias with weights in GGUF's Q4_K; contract in quantized_linear.h.
//   block   256 weights d s q - dmin m, with s and m for 32 weights each:  float16 d, dmin; 12 bytes (packed_scales.h);
//           4 runs of 32 bytes, q of 32 weights in the low nibbles and of the next 32 in the high ones
#include "quantized/interleaved.h"

enum { UNIT = 256, UNIT_BYTES = 144, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1, HALF_PLACE = NO_HALF };
#include "quantized/quantized_linear.h"
#include "quantized/packed_scales.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  interleaved_scales_of_32(s, w, first);
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  return w[4 + block / 2 * GROUPS + group] >> (uint32_t)(block % 2 * 4) & 0x0f0f0f0f;
}

#else

static inline run_scales scales_of(const unsigned char *w, size_t blocks) {
  (void)blocks; // all of the unit
  return scales_of_32(w);
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  return shifted(*(const codes *)(w + 16 + block / 2 * BLOCK), (int)block % 2 * 4) & 15;
}

#endif

QUANTIZED_LINEAR(q4_k)
