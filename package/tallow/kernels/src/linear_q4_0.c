// y = x @ wᵀ + bias with weights in GGUF's Q4_0; contract in quantized_linear.h.
//   block   32 weights d (q - 8):  float16 d, 16 bytes with q[0..15] in the low nibbles and q[16..31] in the high ones
#include "interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 18, HALVES = 1, OFFSET = 8, HAS_MINIMA = 0, HALF_PLACE = HALF_BEFORE };
#include "quantized_linear.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  put(s->scales[0][first], halves_at(w));
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return column_nibbles(w, group);
}

#else

static inline unit_scales scales_of(const unsigned char *w) { return (unit_scales){.scales = {{half_at(w)}}}; }
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 2);
}

#endif

QUANTIZED_LINEAR(q4_0)
