// y = x @ wᵀ + bias with weights in GGUF's Q8_0; contract in quantized_linear.h.
//   block   32 weights d q:  float16 d, int8 q[32]
enum { UNIT = 32, UNIT_BYTES = 34, HALVES = 1, OFFSET = 128, HAS_MINIMA = 0 };
#include "quantized_linear.h"

static inline unit_scales scales_of(const unsigned char *w) { return (unit_scales){.scales = {{half_at(w)}}}; }
static inline codes codes_of(const unsigned char *w, size_t block) {
  (void)block; // the only one
  return *(const codes *)(w + 2) ^ 128;
}

QUANTIZED_LINEAR(tl_linear_q8_0)
