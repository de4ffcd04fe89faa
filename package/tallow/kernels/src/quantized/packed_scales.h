// The scales of blocks of 256 weights. Included by formats, after quantized_linear.h.
//
// Q4_K and Q5_K have float16 d, dmin, then eight scales and eight minima of six bits each, in twelve bytes:
//   bytes 0 to 3    low six bits: scales 0 to 3;  upper two: those of scales 4 to 7
//   bytes 4 to 7    the same of the minima
//   bytes 8 to 11   low nibble: the low four bits of scales 4 to 7;  high nibble: those of minima 4 to 7
// The others have 16 scales, of 16 weights each.

#if INTERLEAVES

static inline __attribute__((unused)) void interleaved_scales_of_32(column_scales *s, const unsigned char *w,
                                                                    size_t first) {
  const column_words *words = (const column_words *)w;
  column_floats d = low_halves(words[0]), dmin = high_halves(words[0]);
  for (size_t i = 0; i < 2; i++) { // four scales and minima in a word
    column_words scales = words[1], minima = words[2];
    if (i == 0)
      scales &= 0x3f3f3f3f, minima &= 0x3f3f3f3f;
    else
      scales = (words[3] & 0x0f0f0f0f) | (scales >> 2 & 0x30303030),
      minima = (words[3] >> 4 & 0x0f0f0f0f) | (minima >> 2 & 0x30303030);
    for (size_t b = 0; b < 4; b++) {
      put(s->scales[0][first + 4 * i + b], d * floats_of_bytes(scales, b));
      put(s->minima[0][first + 4 * i + b], dmin * floats_of_bytes(minima, b));
    }
  }
}

#else

typedef int8_t sixteen_signed __attribute__((vector_size(16), aligned(1)));
typedef int8_t eight_signed __attribute__((vector_size(WIDE)));

static inline floats eight_floats(eight_signed v) {
  return __builtin_convertvector(__builtin_convertvector(v, ints), floats);
}

static inline floats words_as_floats(uint32_t low, uint32_t high) {
  union {
    uint32_t words[2];
    eight_signed bytes;
  } eight = {{low, high}};
  return eight_floats(eight.bytes);
}

// Return d s and dmin m, for 32 weights each.
static inline __attribute__((unused)) run_scales scales_of_32(const unsigned char *w) {
  uint32_t first = word_at(w + 4), second = word_at(w + 8), third = word_at(w + 12), six = 0x3f3f3f3f, four = 0x0f0f0f0f;
  floats s = words_as_floats(first & six, (third & four) | (first >> 2 & 0x30303030));
  floats m = words_as_floats(second & six, (third >> 4 & four) | (second >> 2 & 0x30303030));
  return (run_scales){{s * all(half_at(w))}, {m * all(half_at(w + 2))}};
}

// Return d s without minima, for 16 weights each.
static inline __attribute__((unused)) run_scales scales_of_16(sixteen_signed s, float d) {
  eight_signed first = __builtin_shufflevector(s, s, 0, 2, 4, 6, 8, 10, 12, 14);
  eight_signed second = __builtin_shufflevector(s, s, 1, 3, 5, 7, 9, 11, 13, 15);
  return (run_scales){.scales = {eight_floats(first) * all(d), eight_floats(second) * all(d)}};
}

#endif
