// Vectors of some columns of y, of which the last may be fewer. The includer has defined the vector, column_floats.
#ifndef TALLOW_COLUMN_FLOATS_H
#define TALLOW_COLUMN_FLOATS_H

// Not {0} + s, which is an addition: -0 would become 0.
static inline column_floats every_column(float s) { return s - (column_floats){0}; }

// Not inlined: only the last columns of y take less than a vector.
static __attribute__((noinline)) void copy_part(float *to, const float *from, size_t n) {
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t i = 0; i < n; i++) to[i] = from[i];
}

static inline column_floats load_columns(const float *p, size_t n) {
  if (n == sizeof(column_floats) / sizeof(float)) return *(const column_floats *)p;
  column_floats lanes = {0};
  copy_part((float *)&lanes, p, n);
  return lanes;
}

static inline void store_columns(float *p, size_t n, column_floats v) {
  if (n == sizeof(column_floats) / sizeof(float))
    *(column_floats *)p = v;
  else
    copy_part(p, (const float *)&v, n);
}

#endif
