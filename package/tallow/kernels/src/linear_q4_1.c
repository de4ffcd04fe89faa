// y = x @ wᵀ + bias with weights in GGUF's Q4_1; contract in quantized_linear.h.
//   block   32 weights d q + m:  float16 d, m; 16 bytes as Q4_0
enum { UNIT = 32, UNIT_BYTES = 20, HALVES = 1, OFFSET = 0, HAS_MINIMA = 1 };
#include "quantized_linear.h"

static inline unit_scales scales_of(const unsigned char *w) {
  return (unit_scales){.scales = {{half_at(w)}}, .minima = {{-half_at(w + 2)}}};
}
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 4);
}

QUANTIZED_LINEAR(tl_linear_q4_1)
