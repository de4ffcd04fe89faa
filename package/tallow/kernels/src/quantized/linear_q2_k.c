// y = x @ wᵀ + bias with weights in GGUF's Q2_K; contract in quantized_linear.h.
//   block   256 weights d s q - dmin m, with s and m for 16 weights each:  16 bytes with s in the low nibble and m in the
//           high one;  two runs of 32 bytes with 128 q of two bits each, 32 weights in the lowest bits and so on;
//           float16 d, dmin
#include "quantized/interleaved.h"

enum { UNIT = 256, UNIT_BYTES = 84, HALVES = 2, OFFSET = 0, HAS_MINIMA = 1, HALF_PLACE = NO_HALF };
#include "quantized/quantized_linear.h"
#include "quantized/packed_scales.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  const column_words *words = (const column_words *)w;
  column_floats d = low_halves(words[20]), dmin = high_halves(words[20]);
  for (size_t b = 0; b < UNIT_BLOCKS; b++)
    for (size_t h = 0; h < 2; h++) {
      column_words packed = words[b / 2];
      put(s->scales[h][first + b], d * floats_of_bytes(packed & 0x0f0f0f0f, b % 2 * 2 + h));
      put(s->minima[h][first + b], dmin * floats_of_bytes(packed >> 4 & 0x0f0f0f0f, b % 2 * 2 + h));
    }
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  return w[4 + block / 4 * GROUPS + group] >> (uint32_t)(block % 4 * 2) & 0x03030303;
}

#else

static inline run_scales scales_of(const unsigned char *w, size_t blocks) {
  (void)blocks; // all of the unit
  half_codes packed = *(const half_codes *)w;
  run_scales s = scales_of_16((sixteen_signed)(packed & 15), half_at(w + 80));
  run_scales m = scales_of_16((sixteen_signed)(packed >> 4), half_at(w + 82));
  return (run_scales){{s.scales[0], s.scales[1]}, {m.scales[0], m.scales[1]}};
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  return shifted(*(const codes *)(w + 16 + block / 4 * BLOCK), (int)block % 4 * 2) & 3;
}

#endif

QUANTIZED_LINEAR(q2_k)
