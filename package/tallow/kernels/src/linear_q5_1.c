// y = x @ wᵀ + bias with weights in GGUF's Q5_1; contract in quantized_linear.h.
//   block   32 weights d q + m:  float16 d, m; 4 bytes with the highest bits of q[0..31], 16 bytes with the others as Q4_0
#include "interleaved.h"

enum { UNIT = 32, UNIT_BYTES = 24, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1, HALF_PLACE = NO_HALF };
#include "quantized_linear.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  const column_words *words = (const column_words *)w;
  put(s->scales[0][first], low_halves(words[0]));
  put(s->minima[0][first], -high_halves(words[0]));
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  (void)block; // the only one
  return column_nibbles(w + 2, group) | column_bits(w[1], group) << 4;
}

#else

static inline unit_scales scales_of(const unsigned char *w) {
  return (unit_scales){.scales = {{half_at(w)}}, .minima = {{-half_at(w + 2)}}};
}
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 8) | bits_at(w + 4) << 4;
}

#endif

QUANTIZED_LINEAR(q5_1)
