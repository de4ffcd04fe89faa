// Products of rounded rows of x with a panel; contract in quantized_panel.h.
#include "quantized_panel.h"

#if !INTERLEAVES

enum { ROWS = 4 }; // of x at a time

typedef int32_t column_ints __attribute__((vector_size(4 * PANEL_COLUMNS), aligned(4)));
typedef float column_floats __attribute__((vector_size(4 * PANEL_COLUMNS), aligned(4)));
typedef int32_t unaligned_int __attribute__((aligned(1), may_alias));
#include "column_floats.h"

// Σ of GROUP products in each lane
static inline column_ints dot_columns(column_ints start, column_ints w, int32_t x) {
  ints every = {x, x, x, x, x, x, x, x};
#if defined __ARM_FEATURE_DOTPROD
  return (column_ints)dot_signed((ints)start, (signed_codes)w, (signed_codes)every);
#else
  union {
    column_ints all;
    eight_shorts half[2];
  } first = {w}, second = {(column_ints)every};
  union {
    column_ints all;
    four_ints half[2];
  } sum = {start};
  for (int h = 0; h < 2; h++) sum.half[h] += dot_pairs(first.half[h], second.half[h]);
  return sum.all;
#endif
}

// `rows` rows of x; constant where this is inlined, as are the terms, so that the sums stay in registers.
static inline __attribute__((always_inline)) void tile(float *y, size_t y_row, const rounded *x, const panel *p,
                                                       panel_place place, int rows, int halves, int has_minima) {
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
        column_ints w = (column_ints)p->codes[b][g];
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++) {
          int32_t group = *(const unaligned_int *)(x[i].codes + block * BLOCK + (size_t)g * GROUP);
          product[i] = dot_columns(product[i], w, group);
        }
      }
      column_floats scale = *(const column_floats *)p->scales[h][b], minimum = *(const column_floats *)p->minima[h][b];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        column_floats exact = __builtin_convertvector(product[i], column_floats);
        column_floats scaled = exact * scale;
        if (has_minima) scaled -= every_column(x[i].sums[halves == 2 ? h : 2][block]) * minimum;
        acc[i] += scaled * every_column(x[i].scales[block]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store_columns(y + (size_t)i * y_row, place.columns, acc[i]);
}

#define PANEL_TIMES(NAME, halves, has_minima)                                                                            \
  void NAME(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const panel *p, panel_place place) {     \
    size_t i = 0;                                                                                                        \
    rounded rows[ROWS];                                                                                                  \
    for (; i + ROWS <= m; i += ROWS) {                                                                                   \
      for (size_t r = 0; r < ROWS; r++) rows[r] = rounded_row(x + (i + r) * rounded_bytes(k), k);                        \
      tile(y + i * y_row, y_row, rows, p, place, ROWS, halves, has_minima);                                              \
    }                                                                                                                    \
    for (; i < m; i++) {                                                                                                 \
      rows[0] = rounded_row(x + i * rounded_bytes(k), k);                                                                \
      tile(y + i * y_row, y_row, rows, p, place, 1, halves, has_minima);                                                 \
    }                                                                                                                    \
  }

PANEL_TIMES(tl_panel_plain, 1, 0)
PANEL_TIMES(tl_panel_plain_halves, 2, 0)
PANEL_TIMES(tl_panel_minima, 1, 1)
PANEL_TIMES(tl_panel_minima_halves, 2, 1)
#endif
