// Products of rounded rows of x with unpacked codes, sixteen rows at a time, by the matrix tiles of AMX; contract of
// `panel_tiles` in column_tile.h. The integer products of a block are exact, and scaled in the order and with the roundings
// of `column_tile`, so a row has the bits that it has among fewer rows.
#include "tiles/tiles.h"

#if HAS_TILES
#include "quantized/column_tile.h"

EXPORT panel_tiles *tl_panel_tiles(int halves, int has_minima);

typedef int8_t line_of_bytes __attribute__((vector_size(LINE), aligned(4), may_alias));

// A unit has one scale: a block of 32, or half of one. Tiles begin a unit, and store the sums of another, while vectors scale
// the one before it: the processor looks ahead over a few hundred instructions only.
enum { BLOCK_CODES = GROUPS * LINE, SUMS = 4, BUFFERS = 2 };

// Copy the codes of each vector of columns, signed, to where its blocks follow each other.
static __attribute__((noinline)) void copy_codes(int8_t *codes, const place *at) {
  for (size_t i = 0; i < at->blocks * GROUPS; i++)
    for (size_t v = 0; v < VECTORS; v++)
      *(line_of_bytes *)(codes + v * BLOCKS * BLOCK_CODES + i * LINE) =
          *(const line_of_bytes *)(at->w + (i * VECTORS + v) * LINE) - (int8_t)at->offset;
}

// The first number of sixteen rows, which are as many bytes apart.
static inline const float *number_of(const float *first, size_t bytes, int row) {
  return (const float *)((const unsigned char *)first + (size_t)row * bytes);
}

// Where the products of sixteen rows with one vector of columns are.
typedef struct {
  const cell *x;
  const int8_t *codes;
  int32_t (*sums)[TILE * TILE]; // of BUFFERS units, the one that is scaled and the next
  size_t row_bytes, units, bytes; // bytes of a unit in a row
} products_of_units;

// TO, X and W are the numbers of tiles.
#define BEGIN_UNIT(P, I, TO, X, W)                                                                                       \
  if ((I) < (P).units) {                                                                                                 \
    CLEAR_TILE(TO);                                                                                                      \
    _tile_loadd(X, (P).x + (I) * (P).bytes, (P).row_bytes);                                                              \
    _tile_loadd(W, (P).codes + (I) * (P).bytes * COLUMNS, LINE);                                                         \
    _tile_dpbssd(TO, X, W);                                                                                              \
  }
#define STORE_UNIT(P, I, FROM)                                                                                           \
  if ((I) < (P).units) _tile_stored(FROM, (P).sums[FROM % BUFFERS], LINE);

// y of sixteen rows with one vector of columns. `factors` are those of the minima: of each half, row and block.
static inline __attribute__((always_inline)) void sixteen_rows(float *y, size_t y_row, rounded x, size_t row_bytes,
                                                               const int8_t *codes, const column_scales *s, const place *at,
                                                               size_t vector, const float (*factors)[TILE][BLOCKS],
                                                               size_t halves, int has_minima) {
  int32_t sums[BUFFERS][TILE * TILE] __attribute__((aligned(LINE)));
  column_floats acc[TILE];
  const unsigned char *next = at->next_of ? at->next_of[vector] : 0;
  products_of_units p = {x.codes + at->first * BLOCK, codes, sums, row_bytes, at->blocks * halves, BLOCK / halves};
  BEGIN_UNIT(p, 0, 0, 4, 6)
  BEGIN_UNIT(p, 1, 1, 5, 7)
  STORE_UNIT(p, 0, 0)
#pragma clang loop unroll(full)
  for (int i = 0; i < TILE; i++) acc[i] = start_of(y + (size_t)i * y_row, at, vector);
#pragma clang loop unroll(disable)
  for (size_t u = 0; u < p.units; u += SUMS)
#pragma clang loop unroll(full)
    for (size_t j = 0; j < SUMS; j++) {
      size_t b = (u + j) / halves, h = j % halves;
      if (u + j >= p.units) break;
      if (j == 0) BEGIN_UNIT(p, u + 2, 2, 4, 6)
      if (j == 1) BEGIN_UNIT(p, u + 3, 3, 5, 7)
      if (j == 2) BEGIN_UNIT(p, u + 4, 0, 4, 6)
      if (j == 3) BEGIN_UNIT(p, u + 5, 1, 5, 7)
      if (j == 0) STORE_UNIT(p, u + 1, 1)
      if (j == 1) STORE_UNIT(p, u + 2, 2)
      if (j == 2) STORE_UNIT(p, u + 3, 3)
      if (j == 3) STORE_UNIT(p, u + 4, 0)
      for (size_t line = 0; next && h == 0 && line < at->next_bytes; line += LINE)
        __builtin_prefetch(next + b * at->next_bytes + line, 0, 2);
      const column_ints *exact = (const column_ints *)sums[j % BUFFERS];
      const float *scales = x.scales + at->first + b;
      column_floats scale = *(const column_floats *)s->scales[h][b], minimum = *(const column_floats *)s->minima[h][b];
#pragma clang loop unroll(full)
      for (int i = 0; i < TILE; i++) {
        column_floats factor = scale * every_column(*number_of(scales, row_bytes, i));
        acc[i] = TIMES_PLUS(__builtin_convertvector(exact[i], column_floats), factor, acc[i]);
        if (has_minima) acc[i] = TIMES_PLUS(-minimum, every_column(factors[h][i][b]), acc[i]);
      }
    }
#pragma clang loop unroll(full)
  for (int i = 0; i < TILE; i++) store_columns(y + (size_t)i * y_row + vector * COLUMNS, columns_of_vector(at, vector), acc[i]);
}

static inline __attribute__((always_inline)) size_t whole_tiles(float *y, size_t y_row, const unsigned char *x, size_t m,
                                                                size_t k, const place *at, size_t halves,
                                                                int has_minima) {
  int8_t codes[VECTORS][BLOCKS * BLOCK_CODES] __attribute__((aligned(LINE)));
  float factors[2][TILE][BLOCKS];
  size_t row_bytes = rounded_bytes(k), i = 0;
  place from = *at;
  copy_codes(codes[0], at);
  configure_tiles((int)(BLOCK / halves));
  for (; i + TILE <= m; i += TILE, from.next_of = 0) {
    rounded row = rounded_row(x + i * row_bytes, k);
    for (size_t h = 0; has_minima && h < halves; h++)
      for (int r = 0; r < TILE; r++)
        for (size_t b = 0; b < at->blocks; b++)
          factors[h][r][b] = *number_of(row.scales + at->first + b, row_bytes, r) *
                             *number_of(row.sums[halves == 2 ? h : 2] + at->first + b, row_bytes, r);
    for (size_t v = 0; v < VECTORS; v++)
      if (columns_of_vector(at, v))
        sixteen_rows(y + i * y_row, y_row, row, row_bytes, codes[v], at->scales + v, &from, v,
                     (const float(*)[TILE][BLOCKS])factors, halves, has_minima);
  }
  _tile_release();
  return i;
}

#define PANEL_TILES(NAME, halves, has_minima)                                                                            \
  static size_t NAME(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const place *at) {              \
    return whole_tiles(y, y_row, x, m, k, at, halves, has_minima);                                                       \
  }

PANEL_TILES(plain, 1, 0)
PANEL_TILES(plain_halves, 2, 0)
PANEL_TILES(minima, 1, 1)
PANEL_TILES(minima_halves, 2, 1)

panel_tiles *tl_panel_tiles(int halves, int has_minima) {
  return halves == 2 ? has_minima ? minima_halves : plain_halves : has_minima ? minima : plain;
}

#endif
