// y = x @ wᵀ + bias with weights in GGUF's Q5_1; contract in quantized_linear.h.
//   block   32 weights d q + m:  float16 d, m; 4 bytes with the highest bits of q[0..31], 16 bytes with the others as Q4_0
#include "quantized/interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 24, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1, HALF_PLACE = NO_HALF };
#include "quantized/quantized_linear.h"
#include "quantized/half_scales.h"

#if INTERLEAVES

static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return column_nibbles(w + 2, group) | column_bits(w[1], group) << 4;
}

#else

static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 8) | bits_at(w + 4) << 4;
}

#endif

QUANTIZED_LINEAR(q5_1)
