// The scales of blocks of 32 weights: a float16 d; with HAS_MINIMA a float16 m after it, which is added to each weight.
// Included by formats, after quantized_linear.h.

#if INTERLEAVES

static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first) {
  column_words both = *(const column_words *)w;
  put(s->scales[0][first], HAS_MINIMA ? low_halves(both) : halves_at(w));
  if (HAS_MINIMA) put(s->minima[0][first], -high_halves(both));
}

#else

static inline unit_scales scales_of(const unsigned char *w) {
  unit_scales scales = {.scales = {{half_at(w)}}};
  if (HAS_MINIMA) scales.minima[0][0] = -half_at(w + 2);
  return scales;
}

#endif
