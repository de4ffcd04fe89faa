// y = x @ wᵀ + bias with weights in GGUF's Q4_0; contract in quantized_linear.h.
//   block   32 weights d (q - 8):  float16 d, 16 bytes with q[0..15] in the low nibbles and q[16..31] in the high ones
#include "quantized/interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 18, HALVES = 1, OFFSET = 8, HAS_MINIMA = 0, HALF_PLACE = HALF_BEFORE };
#include "quantized/quantized_linear.h"
#include "quantized/half_scales.h"

#if INTERLEAVES

static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return column_nibbles(w, group);
}

#else

static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 2);
}

#endif

QUANTIZED_LINEAR(q4_0)
