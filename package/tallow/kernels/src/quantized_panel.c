// Products of rounded rows of x with a panel; contract in quantized_panel.h.
#include "quantized_panel.h"

enum { ROWS = 4 }; // of x at a time

typedef int32_t column_ints __attribute__((vector_size(4 * COLUMNS), aligned(4)));
typedef float column_floats __attribute__((vector_size(4 * COLUMNS), aligned(4)));
typedef int32_t unaligned_int __attribute__((aligned(1), may_alias));

#if defined __AVX512VNNI__ && defined __AVX512VL__
static inline column_ints dot_columns(column_ints start, column_ints w, int32_t x, int is_signed) {
  (void)is_signed;
  return (column_ints)_mm512_dpbusd_epi32((__m512i)start, (__m512i)w, _mm512_set1_epi32(x));
}
#else

// Σ of GROUP products in each lane
static inline ints dot_group(ints start, ints w, int32_t x, int is_signed) {
  ints every = {x, x, x, x, x, x, x, x};
#if defined __AVX2__ || defined __ARM_FEATURE_DOTPROD
  return is_signed ? dot_signed(start, (signed_codes)w, (signed_codes)every)
                   : dot_unsigned(start, (codes)w, (signed_codes)every);
#else
  union {
    ints all;
    eight_shorts half[2];
  } first = {w}, second = {every};
  union {
    ints all;
    four_ints half[2];
  } sum = {start};
  (void)is_signed;
  for (int h = 0; h < 2; h++) sum.half[h] += dot_pairs(first.half[h], second.half[h]);
  return sum.all;
#endif
}
static inline column_ints dot_columns(column_ints start, column_ints w, int32_t x, int is_signed) {
  union {
    column_ints all;
    ints part[PARTS];
  } sum = {start}, weights = {w};
#pragma clang loop unroll(full)
  for (int i = 0; i < PARTS; i++) sum.part[i] = dot_group(sum.part[i], weights.part[i], x, is_signed);
  return sum.all;
}
#endif

static inline column_floats every_column(float s) { return (column_floats){0} + s; }

// Not inlined: only the last columns of y take less than a vector.
static __attribute__((noinline)) void copy_part(float *to, const float *from, size_t n) {
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t i = 0; i < n; i++) to[i] = from[i];
}

static inline column_floats load_columns(const float *p, size_t n) {
  if (n == COLUMNS) return *(const column_floats *)p;
  column_floats lanes = {0};
  copy_part((float *)&lanes, p, n);
  return lanes;
}

static inline void store_columns(float *p, size_t n, column_floats v) {
  if (n == COLUMNS)
    *(column_floats *)p = v;
  else
    copy_part(p, (const float *)&v, n);
}

// `rows` rows of x; constant where this is inlined, as are the terms, so that the sums stay in registers.
static inline __attribute__((always_inline)) void tile(float *y, size_t y_row, const rounded *x, const panel *p,
                                                       panel_place place, int rows, int halves, int has_offset,
                                                       int is_signed, int has_minima) {
  column_floats acc[ROWS];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
    acc[i] = place.first  ? load_columns(y + (size_t)i * y_row, place.columns)
             : place.bias ? load_columns(place.bias, place.columns)
                          : (column_floats){0};
  for (size_t b = 0; b < place.blocks; b++) {
    size_t block = place.first + b;
#pragma clang loop unroll(full)
    for (int h = 0; h < halves; h++) {
      column_ints product[ROWS] = {0};
#pragma clang loop unroll_count(2)
      for (int g = GROUPS / halves * h; g < GROUPS / halves * (h + 1); g++) {
        column_ints w = *(const column_ints *)p->codes[b][g];
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++) {
          int32_t group = *(const unaligned_int *)(x[i].codes + block * BLOCK + (size_t)g * GROUP);
          product[i] = dot_columns(product[i], w, group, is_signed);
        }
      }
      column_floats scale = *(const column_floats *)p->scales[h][b], minimum = *(const column_floats *)p->minima[h][b];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        column_floats exact = __builtin_convertvector(product[i], column_floats);
        column_floats sum = every_column(x[i].sums[halves == 2 ? h : 2][block]);
        if (has_offset) exact -= sum * every_column(place.offset);
        column_floats scaled = exact * scale;
        if (has_minima) scaled -= sum * minimum;
        acc[i] += scaled * every_column(x[i].scales[block]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store_columns(y + (size_t)i * y_row, place.columns, acc[i]);
}

#define PANEL_TIMES(NAME, halves, has_offset, is_signed, has_minima)                                                     \
  void NAME(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const panel *p, panel_place place) {     \
    size_t i = 0;                                                                                                        \
    rounded rows[ROWS];                                                                                                  \
    for (; i + ROWS <= m; i += ROWS) {                                                                                   \
      for (size_t r = 0; r < ROWS; r++) rows[r] = rounded_row(x + (i + r) * rounded_bytes(k), k);                        \
      tile(y + i * y_row, y_row, rows, p, place, ROWS, halves, has_offset, is_signed, has_minima);                       \
    }                                                                                                                    \
    for (; i < m; i++) {                                                                                                 \
      rows[0] = rounded_row(x + i * rounded_bytes(k), k);                                                                \
      tile(y + i * y_row, y_row, rows, p, place, 1, halves, has_offset, is_signed, has_minima);                          \
    }                                                                                                                    \
  }

PANEL_TIMES(tl_panel_offset, 1, UNSIGNED_WEIGHTS, 0, 0)
PANEL_TIMES(tl_panel_offset_halves, 2, UNSIGNED_WEIGHTS, 0, 0)
PANEL_TIMES(tl_panel_minima, 1, 0, 0, 1)
PANEL_TIMES(tl_panel_minima_halves, 2, 0, 0, 1)
#if defined __AVX2__ && !HAS_DPBUSD
PANEL_TIMES(tl_panel_signed, 1, 0, 1, 0)
#endif
