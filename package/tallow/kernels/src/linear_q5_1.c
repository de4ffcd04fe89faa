// y = x @ wᵀ + bias with weights in GGUF's Q5_1; contract in quantized_linear.h.
//   block   32 weights d q + m:  float16 d, m; 4 bytes with the highest bits of q[0..31], 16 bytes with the others as Q4_0
enum { UNIT = 32, UNIT_BYTES = 24, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1 };
#include "quantized_linear.h"

static inline unit_scales scales_of(const unsigned char *w) {
  return (unit_scales){.scales = {{half_at(w)}}, .minima = {{-half_at(w + 2)}}};
}
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 8) | bits_at(w + 4) << 4;
}

QUANTIZED_LINEAR(tl_linear_q5_1)
