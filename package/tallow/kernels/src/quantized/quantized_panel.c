// Products of rounded rows of x with a panel; contract in quantized_panel.h. A row is summed in the same order, and with the
// same roundings, in a tile of any number of rows.
#include "quantized/quantized_panel.h"

#if !INTERLEAVES

enum { ROWS = 4 }; // of x at a time

typedef int32_t column_ints __attribute__((vector_size(4 * PANEL_COLUMNS), aligned(4)));
typedef float column_floats __attribute__((vector_size(4 * PANEL_COLUMNS), aligned(4)));
typedef int32_t unaligned_int __attribute__((aligned(1), may_alias));
#include "quantized/column_floats.h"

typedef union {
  column_ints all;
  four_ints half[2];
} column_halves;

static inline four_ints every_four(const void *group) {
  int32_t v = *(const unaligned_int *)group;
  return (four_ints){v, v, v, v};
}

// Σ of the products with GROUP codes of x, which begin at `first`, in each lane
static inline column_ints dot_columns(column_ints start, column_ints w, rounded x, size_t first, int relaxed) {
  column_halves weights = {w}, sum = {start};
  for (int h = 0; h < 2; h++) {
    if (SPLIT_SIGNS) weights.half[h] ^= every_four(x.signs + first);
    sum.half[h] = dot_cells(sum.half[h], weights.half[h], every_four(x.codes + first), relaxed);
  }
  return sum.all;
}

// `rows` rows of x; constant where this is inlined, as are the terms, so that the sums stay in registers.
static inline __attribute__((always_inline)) void tile(float *y, size_t y_row, const rounded *x, const panel *p,
                                                       panel_place place, int rows, int halves, int has_minima,
                                                       int relaxed) {
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
      column_ints product[ROWS];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++)
        product[i] = (column_ints){0} + correction_of(x[i], halves == 2 ? h : 2, block);
#pragma clang loop unroll_count(2)
      for (int g = GROUPS / halves * h; g < GROUPS / halves * (h + 1); g++) {
        column_ints w = (column_ints)p->codes[b][g];
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++)
          product[i] = dot_columns(product[i], w, x[i], block * BLOCK + (size_t)g * GROUP, relaxed);
      }
      column_floats scale = *(const column_floats *)p->scales[h][b], minimum = *(const column_floats *)p->minima[h][b];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        column_floats exact = __builtin_convertvector(product[i], column_floats);
        column_floats scaled = exact * scale;
        if (has_minima) scaled = TIMES_PLUS(-every_column(x[i].sums[halves == 2 ? h : 2][block]), minimum, scaled);
        acc[i] = TIMES_PLUS(scaled, every_column(x[i].scales[block]), acc[i]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store_columns(y + (size_t)i * y_row, place.columns, acc[i]);
}

static inline __attribute__((always_inline)) void tiles(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k,
                                                        const panel *p, panel_place place, int halves, int has_minima,
                                                        int relaxed) {
  size_t i = 0;
  rounded rows[ROWS];
  for (; relaxed && i + ROWS <= m; i += ROWS) { // the other way is rare and kept small
    for (size_t r = 0; r < ROWS; r++) rows[r] = rounded_row(x + (i + r) * rounded_bytes(k), k);
    tile(y + i * y_row, y_row, rows, p, place, ROWS, halves, has_minima, relaxed);
  }
  for (; i < m; i++) {
    rows[0] = rounded_row(x + i * rounded_bytes(k), k);
    tile(y + i * y_row, y_row, rows, p, place, 1, halves, has_minima, relaxed);
  }
}

#define PANEL_TIMES(NAME, halves, has_minima)                                                                            \
  void NAME(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const panel *p, panel_place place) {     \
    if (relaxed_is_exact())                                                                                              \
      tiles(y, y_row, x, m, k, p, place, halves, has_minima, 1);                                                         \
    else                                                                                                                 \
      tiles(y, y_row, x, m, k, p, place, halves, has_minima, 0);                                                         \
  }

PANEL_TIMES(tl_panel_plain, 1, 0)
PANEL_TIMES(tl_panel_plain_halves, 2, 0)
PANEL_TIMES(tl_panel_minima, 1, 1)
PANEL_TIMES(tl_panel_minima_halves, 2, 1)
#endif
