// y = x @ wᵀ + bias with weights in GGUF's Q4_0; contract in quantized_linear.h.
//   block   32 weights d (q - 8):  float16 d, 16 bytes with q[0..15] in the low nibbles and q[16..31] in the high ones
enum { UNIT = 32, UNIT_BYTES = 18, HALVES = 1, OFFSET = 8, HAS_MINIMA = 0 };
#include "quantized_linear.h"

static inline unit_scales scales_of(const unsigned char *w) { return (unit_scales){.scales = {{half_at(w)}}}; }
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return nibbles(w + 2);
}

QUANTIZED_LINEAR(tl_linear_q4_0)
