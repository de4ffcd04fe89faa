// y = x @ wᵀ + bias with weights in GGUF's Q5_0; contract in quantized_linear.h.
//   block   32 weights d (q - 16):  float16 d, 4 bytes with the highest bits of q[0..31], 16 bytes with the others as Q4_0
#include "quantized/interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 22, HALVES = 1, OFFSET = 16, HAS_MINIMA = 0, HALF_PLACE = HALF_BEFORE };
#include "quantized/quantized_linear.h"
#include "quantized/half_scales.h"

#if INTERLEAVES

static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return column_nibbles(w + 1, group) | column_bits(w[0], group) << 4;
}

#else

static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 6) | bits_at(w + 2) << 4;
}

#endif

QUANTIZED_LINEAR(q5_0)
