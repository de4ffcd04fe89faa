// y = x @ wᵀ + bias with weights in GGUF's Q8_0; contract in quantized_linear.h.
//   block   32 weights d q:  float16 d, int8 q[32]
#include "quantized/interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 34, HALVES = 1, OFFSET = 128, HAS_MINIMA = 0, HALF_PLACE = HALF_BEFORE };
#include "quantized/quantized_linear.h"
#include "quantized/half_scales.h"

#if INTERLEAVES

static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return SIGNED_CODES ? w[group] : w[group] ^ 0x80808080;
}

#else

static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return *(const codes *)(w + 2) ^ 128;
}

#endif

QUANTIZED_LINEAR(q8_0)
