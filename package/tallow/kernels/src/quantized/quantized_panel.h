// Products of many rounded rows of x with a panel: some rows of w, unpacked and interleaved, so that each lane of a vector
// belongs to a column of y.
//
//                     PANEL_COLUMNS
//                  ┌──────────────┐     One load of four adjacent weights (two of int16) of every column serves several
//    DEPTH / GROUP │ GROUP weights│     rows of x, whose codes are broadcast from memory; a block of 32 is summed in
//                  │ of each row  │     integers, then scaled once. No sums across a vector, and y is stored as it is.
//                  └──────────────┘
//
// A panel holds DEPTH weights of each of its rows and stays in L1.
#ifndef TALLOW_QUANTIZED_PANEL_H
#define TALLOW_QUANTIZED_PANEL_H

#include "quantized/quantized.h"

enum {
  PANEL_COLUMNS = WIDE,
  DEPTH = 512,
  BLOCKS = DEPTH / BLOCK,
  GROUP = 4 / sizeof(cell),
  GROUPS = BLOCK / GROUP // of a block
};

// The weights of a panel are scale · code - minimum, code signed; a block has one or two scales and minima.
typedef struct {
  ints codes[BLOCKS][GROUPS];
  float scales[2][BLOCKS][PANEL_COLUMNS], minima[2][BLOCKS][PANEL_COLUMNS];
} panel;

typedef struct {
  size_t first, blocks; // the blocks of x that the panel belongs to
  size_t columns;       // at most PANEL_COLUMNS
  const float *bias; // (columns,), may be null
} panel_place;

// y (m, columns) = x @ panelᵀ + bias if the place begins the rows, else y += x @ panelᵀ; x is m rounded rows of k elements.
//   tl_panel_plain    weights without minima
//   tl_panel_minima   weights with minima
//   ..._halves        two scales in a block, of 16 weights each
typedef void panel_times(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const panel *p,
                         panel_place place);
panel_times tl_panel_plain, tl_panel_minima, tl_panel_plain_halves, tl_panel_minima_halves;

static inline void transpose_8x8(ints *v) {
  ints a[8], b[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 2) {
    a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 4)
#pragma clang loop unroll(full)
    for (int j = 0; j < 2; j++) {
      b[i + 2 * j] = __builtin_shufflevector(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * j + 1] = __builtin_shufflevector(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; i++) {
    v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

#endif
