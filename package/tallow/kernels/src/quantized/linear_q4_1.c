// y = x @ wᵀ + bias with weights in GGUF's Q4_1; contract in quantized_linear.h.
//   block   32 weights d q + m:  float16 d, m; 16 bytes as Q4_0
#include "quantized/interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 20, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1, HALF_PLACE = NO_HALF };
#include "quantized/quantized_linear.h"
#include "quantized/half_scales.h"

#if INTERLEAVES

static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return column_nibbles(w + 1, group);
}

#else

static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 4);
}

#endif

QUANTIZED_LINEAR(q4_1)
