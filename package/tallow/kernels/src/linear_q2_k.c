// y = x @ wᵀ + bias with weights in GGUF's Q2_K; contract in quantized_linear.h.
//   block   256 weights d s q - dmin m, with s and m for 16 weights each:  16 bytes with s in the low nibble and m in the
//           high one;  two runs of 32 bytes with 128 q of two bits each, 32 weights in the lowest bits and so on;
//           float16 d, dmin
enum { UNIT = 256, UNIT_BYTES = 84, HALVES = 2, OFFSET = 0, HAS_MINIMA = 1 };
#include "quantized_linear.h"
#include "packed_scales.h"

static inline unit_scales scales_of(const unsigned char *w) {
  half_codes packed = *(const half_codes *)w;
  unit_scales s = scales_of_16((sixteen_signed)(packed & 15), half_at(w + 80));
  unit_scales m = scales_of_16((sixteen_signed)(packed >> 4), half_at(w + 82));
  return (unit_scales){{s.scales[0], s.scales[1]}, {m.scales[0], m.scales[1]}};
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  return shifted(*(const codes *)(w + 16 + block / 4 * BLOCK), block % 4 * 2) & 3;
}

QUANTIZED_LINEAR(tl_linear_q2_k)
