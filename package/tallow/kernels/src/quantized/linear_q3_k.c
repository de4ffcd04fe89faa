// y = x @ wᵀ + bias with weights in GGUF's Q3_K; contract in quantized_linear.h.
//   block   256 weights d (s - 32) (q - 4), with s for 16 weights each:  32 bytes, bit g of byte i is the highest of
//           q[32 g + i];  two runs of 32 bytes with the other two bits of 128 q each, 32 weights in the lowest bits and so
//           on;  8 bytes with the lower four bits of s[0..7] in the low nibbles and of s[8..15] in the high ones, 4 bytes
//           with the upper two, s[0..3] in the lowest bits and so on;  float16 d
#include "quantized/interleaved.h"

enum { UNIT = 256, UNIT_BYTES = 110, HALVES = 2, OFFSET = 4, HAS_MINIMA = 0, HALF_PLACE = HALF_AFTER };
#include "quantized/quantized_linear.h"
#include "quantized/packed_scales.h"

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  const column_words *words = (const column_words *)w;
  column_floats d = halves_at((const unsigned char *)(words + 27));
  for (size_t i = 0; i < 4; i++) { // four scales in a word
    column_words low = words[24 + i % 2] >> (uint32_t)(i / 2 * 4) & 0x0f0f0f0f;
    column_words packed = low | (words[26] >> (uint32_t)(2 * i) & 0x03030303) << 4;
    for (size_t j = 0; j < 4; j++)
      put(s->scales[j % 2][first + 2 * i + j / 2], d * (floats_of_bytes(packed, j) - every_column(32.0f)));
  }
}
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group) {
  column_words low = w[8 + block / 4 * GROUPS + group] >> (uint32_t)(block % 4 * 2) & 0x03030303;
  return low | (w[group] >> (uint32_t)block & 0x01010101) << 2;
}

#else

static inline run_scales scales_of(const unsigned char *w, size_t blocks) {
  (void)blocks; // all of the unit
  uint32_t low = word_at(w + 96), next = word_at(w + 100), high = word_at(w + 104), four = 0x0f0f0f0f, two = 0x30303030;
  union {
    uint32_t words[4];
    sixteen_signed bytes;
  } s = {{(low & four) | (high << 4 & two), (next & four) | (high << 2 & two), (low >> 4 & four) | (high & two),
          (next >> 4 & four) | (high >> 2 & two)}};
  return scales_of_16(s.bytes - 32, half_at(w + 108));
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  codes low = shifted(*(const codes *)(w + 32 + block / 4 * BLOCK), (int)block % 4 * 2) & 3;
  return low | (shifted(*(const codes *)w, (int)block - 2) & 1 << 2);
}

#endif

QUANTIZED_LINEAR(q3_k)
