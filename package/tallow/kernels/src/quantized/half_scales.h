// The scales of blocks of 32 weights: a float16 d; with HAS_MINIMA a float16 m after it, which is added to each weight.
// Included by formats, after quantized_linear.h.

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  column_words both = *(const column_words *)w;
  put(s->scales[0][first], HAS_MINIMA ? low_halves(both) : halves_at(w));
  if (HAS_MINIMA) put(s->minima[0][first], -high_halves(both));
}

#else

static inline floats halves_at(const unsigned char *w, size_t blocks) {
  typedef uint16_t half __attribute__((aligned(1), may_alias));
  words bits = {0};
#pragma clang loop unroll(full)
  for (size_t b = 0; b < blocks; b++) bits[b] = *(const half *)(w + b * UNIT_BYTES);
  return floats_of_halves(bits);
}

static inline run_scales scales_of(const unsigned char *w, size_t blocks) {
  run_scales scales = {.scales = {halves_at(w, blocks)}};
  if (HAS_MINIMA) scales.minima[0] = -halves_at(w + 2, blocks);
  return scales;
}

#endif
