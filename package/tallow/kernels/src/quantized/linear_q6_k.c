// y = x @ wᵀ + bias with weights in GGUF's Q6_K; contract in quantized_linear.h.
//   block   256 weights d s (q - 32), with s for 16 weights each:  two runs of 64 bytes with the lower four bits of 128 q
//           each, 64 weights in the low nibbles and the next 64 in the high ones;  two runs of 32 bytes with the upper two
//           bits of 128 q each, 32 weights in the lowest bits and so on;  int8 s[16], float16 d
#include "quantized/interleaved.h"

enum { UNIT = 256, UNIT_BYTES = 210, HALVES = 2, OFFSET = 32, HAS_MINIMA = 0, HALF_PLACE = HALF_AFTER };
#include "quantized/quantized_linear.h"
#include "quantized/packed_scales.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  const column_words *words = (const column_words *)w;
  column_floats d = halves_at((const unsigned char *)(words + 52));
  for (size_t b = 0; b < UNIT_BLOCKS; b++)
    for (size_t h = 0; h < 2; h++) {
      column_ints signed_byte = (column_ints)(words[48 + b / 2] << (uint32_t)(24 - 8 * (b % 2 * 2 + h))) >> 24;
      put(s->scales[h][first + b], d * __builtin_convertvector(signed_byte, column_floats));
    }
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  column_words low = w[block / 4 * 16 + block % 2 * GROUPS + group] >> (uint32_t)(block % 4 / 2 * 4) & 0x0f0f0f0f;
  return low | (w[32 + block / 4 * GROUPS + group] >> (uint32_t)(block % 4 * 2) & 0x03030303) << 4;
}

#else

static inline run_scales scales_of(const unsigned char *w, size_t blocks) {
  (void)blocks; // all of the unit
  return scales_of_16(*(const sixteen_signed *)(w + 192), half_at(w + 208));
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  codes low = shifted(*(const codes *)(w + block / 4 * 64 + block % 2 * BLOCK), (int)block % 4 / 2 * 4) & 15;
  return low | (shifted(*(const codes *)(w + 128 + block / 4 * BLOCK), (int)block % 4 * 2 - 4) & 3 << 4);
}

#endif

QUANTIZED_LINEAR(q6_k)
