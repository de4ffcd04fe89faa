// y = x @ wᵀ + bias with weights in GGUF's Q3_K; contract in quantized_linear.h.
//   block   256 weights d (s - 32) (q - 4), with s for 16 weights each:  32 bytes, bit g of byte i is the highest of
//           q[32 g + i];  two runs of 32 bytes with the other two bits of 128 q each, 32 weights in the lowest bits and so
//           on;  8 bytes with the lower four bits of s[0..7] in the low nibbles and of s[8..15] in the high ones, 4 bytes
//           with the upper two, s[0..3] in the lowest bits and so on;  float16 d
enum { UNIT = 256, UNIT_BYTES = 110, HALVES = 2, OFFSET = 4, HAS_MINIMA = 0 };
#include "quantized_linear.h"
#include "packed_scales.h"

static inline unit_scales scales_of(const unsigned char *w) {
  uint32_t low = word_at(w + 96), next = word_at(w + 100), high = word_at(w + 104), four = 0x0f0f0f0f, two = 0x30303030;
  union {
    uint32_t words[4];
    sixteen_signed bytes;
  } s = {{(low & four) | (high << 4 & two), (next & four) | (high << 2 & two), (low >> 4 & four) | (high & two),
          (next >> 4 & four) | (high >> 2 & two)}};
  return scales_of_16(s.bytes - 32, half_at(w + 108));
}

static inline codes codes_of(const unsigned char *w, size_t block) {
  codes low = shifted(*(const codes *)(w + 32 + block / 4 * BLOCK), block % 4 * 2) & 3;
  return low | (shifted(*(const codes *)w, block) & 1) << 2;
}

QUANTIZED_LINEAR(tl_linear_q3_k)
