// y = x @ wᵀ + bias with weights in GGUF's Q8_0; contract in quantized_linear.h.
//   block   32 weights d q:  float16 d, int8 q[32]
#include "interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 34, HALVES = 1, OFFSET = 128, HAS_MINIMA = 0, HALF_PLACE = HALF_BEFORE };
#include "quantized_linear.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  put(s->scales[0][first], halves_at(w));
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return SIGNED_CODES ? w[group] : w[group] ^ 0x80808080;
}

#else

static inline unit_scales scales_of(const unsigned char *w) { return (unit_scales){.scales = {{half_at(w)}}}; }
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return *(const codes *)(w + 2) ^ 128;
}

#endif

QUANTIZED_LINEAR(q8_0)
