// Products of rows of x with up to COLUMNS columns of w, interleaved (interleaved.h): the part that all formats share.
//
// One or ROWS rows of x at a time: w is read once for them, and a block of 32 is summed in integers, then scaled once.
#ifndef TALLOW_COLUMN_TILE_H
#define TALLOW_COLUMN_TILE_H

#include "interleaved.h"

enum { DEPTH = 1024, BLOCKS = DEPTH / BLOCK, ROWS = 4, GROUPS = BLOCK / 4 };

// Weights of columns are scale · (code - offset) - minimum; a block has one or two scales and minima.
typedef struct {
  float scales[2][BLOCKS][COLUMNS], minima[2][BLOCKS][COLUMNS];
} column_scales;

// Where products are: those of `blocks` blocks from `first` of each row of x with some columns.
typedef struct {
  const unsigned char *w; // interleaved blocks, or unpacked codes
  const column_scales *scales;
  const float *bias; // (columns,), may be null
  size_t first, blocks, columns;
  int32_t offset;
} place;

static inline void put(float *columns, column_floats v) { *(column_floats *)columns = v; }

// How a format, or unpacked codes, are read: the codes [4 group, 4 group + 4) of a block; and what comes before a block: a
// prefetch, and for scales that are read as they come the place of its scale in `own`.
typedef column_words read_codes(const place *at, size_t block, size_t group);
typedef size_t begin_block(const place *at, size_t block, column_scales *own);

typedef struct {
  read_codes *codes;
  begin_block *begin;
  int halves, has_offset, is_signed, has_minima, has_own_scales;
} reader;

// y of `rows` rows of x; constant where this is inlined, as the reader, so that the sums stay in registers.
static inline __attribute__((always_inline)) void column_tile(float *y, size_t y_row, const rounded *x, const place *at,
                                                              int rows, reader w) {
  column_scales own;
  const column_scales *s = w.has_own_scales ? &own : at->scales;
  column_floats acc[ROWS];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
    acc[i] = at->first  ? load_columns(y + (size_t)i * y_row, at->columns)
             : at->bias ? load_columns(at->bias, at->columns)
                        : (column_floats){0};
  for (size_t b = 0; b < at->blocks; b++) {
    size_t block = at->first + b, place_of_scale = w.begin(at, b, &own);
#pragma clang loop unroll(full)
    for (int h = 0; h < w.halves; h++) {
      column_ints product[ROWS];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++)
        product[i] = (column_ints){0} + (w.has_offset ? x[i].corrections[w.halves == 2 ? h : 2][block] * at->offset : 0);
#if defined __AVX512F__
#pragma clang loop unroll(full)
#else // which would take many instructions
#pragma clang loop unroll_count(2)
#endif
      for (int g = GROUPS / w.halves * h; g < GROUPS / w.halves * (h + 1); g++) {
        column_words codes = w.codes(at, b, (size_t)g);
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++) {
          int32_t group = *(const unaligned_int *)(x[i].codes + block * BLOCK + 4 * (size_t)g);
          product[i] = dot_columns(product[i], codes, group, w.is_signed);
        }
      }
      column_floats scale = *(const column_floats *)s->scales[h][place_of_scale];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        float of_x = x[i].scales[block];
        acc[i] += __builtin_convertvector(product[i], column_floats) * (scale * every_column(of_x));
        if (w.has_minima) {
          column_floats minimum = *(const column_floats *)s->minima[h][place_of_scale];
          acc[i] -= minimum * every_column(of_x * x[i].sums[w.halves == 2 ? h : 2][block]);
        }
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store_columns(y + (size_t)i * y_row, at->columns, acc[i]);
}

// y of ROWS rows of x with unpacked codes: a vector of each group of each block, after another; in interleaved_panel.c.
//   tl_panel_plain    weights without minima         tl_panel_signed   their codes are signed
//   tl_panel_minima   weights without an offset
//   ..._halves        two scales in a block, of 16 weights each
typedef void panel_rows(float *y, size_t y_row, const rounded *x, const place *at);
panel_rows tl_panel_plain, tl_panel_signed, tl_panel_minima, tl_panel_plain_halves, tl_panel_minima_halves;

#endif
