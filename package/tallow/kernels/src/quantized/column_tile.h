// Products of rows of x with columns of w, interleaved (interleaved.h): the part that all formats share.
//
// A tile is up to MOST_ROWS rows of x times one or VECTORS vectors of COLUMNS columns: w is read once for its rows, x once
// for its vectors. A block of 32 is summed in integers, then scaled once. A row is summed in the same order, and with the same
// roundings, in a tile of any number of rows.
#ifndef TALLOW_COLUMN_TILE_H
#define TALLOW_COLUMN_TILE_H

#include "quantized/interleaved.h"

// Vectors of columns that ROWS rows of x are multiplied by at a time, once codes are unpacked: where there are registers
// for two, a product takes 0.75 loads instead of 1.25.
#if defined __AVX512F__
enum { VECTORS = 2 };
#else
enum { VECTORS = 1 };
#endif
enum { DEPTH = 1024 / VECTORS, BLOCKS = DEPTH / BLOCK, ROWS = 4, MOST_ROWS = 8, GROUPS = BLOCK / 4 };

// Weights of columns are scale · (code - offset) - minimum; a block has one or two scales and minima.
typedef struct {
  float scales[2][BLOCKS][COLUMNS], minima[2][BLOCKS][COLUMNS];
} column_scales;

// Where products are: those of `blocks` blocks from `first` of each row of x with some columns.
typedef struct {
  const unsigned char *w; // interleaved blocks, or unpacked codes
  const column_scales *scales; // of each vector
  const float *bias; // (columns,), may be null
  size_t first, blocks, columns;
  int32_t offset;
  const unsigned char *next; // bytes to prefetch for the next columns
  size_t next_bytes;         // of them for each block, a multiple of a cache line
  const unsigned char *const *next_of; // for panel_tiles: where they begin for each vector, or null
} place;

static inline void put(float *columns, column_floats v) { *(column_floats *)columns = v; }

static inline size_t columns_of_vector(const place *at, size_t vector) {
  return at->columns < COLUMNS * vector ? 0 : smaller(COLUMNS, at->columns - COLUMNS * vector);
}

// How a format, or unpacked codes, are read: the codes [4 group, 4 group + 4) of a block of a vector of columns; and what
// comes before a block: a prefetch, and for scales that are read as they come the place of its scale in `own`.
typedef column_words read_codes(const place *at, size_t block, size_t group, size_t vector);
typedef size_t begin_block(const place *at, size_t block, column_scales *own);

typedef struct {
  read_codes *codes;
  begin_block *begin;
  int halves, has_offset, is_signed, has_minima, has_own_scales;
} reader;

// The sums of a tile of several rows, whose columns are many branches: once for all formats, in interleaved_panel.c.
typedef struct {
  column_floats of[MOST_ROWS][VECTORS] __attribute__((aligned(64))); // loaded right after they are stored
} tile_sums;
void tl_begin_sums(tile_sums *sums, const float *y, size_t y_row, const place *at, int rows, int vectors);
void tl_store_sums(float *y, size_t y_row, const place *at, const tile_sums *sums, int rows, int vectors);
void tl_read_rows(rounded *rows, const unsigned char *x, size_t m, size_t k); // there too

static inline column_floats start_of(const float *y, const place *at, size_t vector) {
  size_t columns = columns_of_vector(at, vector);
  return at->first  ? load_columns(y + vector * COLUMNS, columns)
         : at->bias ? load_columns(at->bias + vector * COLUMNS, columns)
                    : (column_floats){0};
}

// y of `rows` rows of x and `vectors` vectors of columns; constant where this is inlined, as the reader, so that the sums
// stay in registers.
static inline __attribute__((always_inline)) void column_tile(float *y, size_t y_row, const rounded *x, const place *at,
                                                              int rows, int vectors, reader w) {
  column_scales own;
  const column_scales *s = w.has_own_scales ? &own : at->scales;
  tile_sums sums;
  if (rows > 1) tl_begin_sums(&sums, y, y_row, at, rows, vectors);
  column_floats acc[MOST_ROWS][VECTORS];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) acc[i][v] = rows > 1 ? sums.of[i][v] : start_of(y, at, 0);
  for (size_t b = 0; b < at->blocks; b++) {
    size_t block = at->first + b, place_of_scale = w.begin(at, b, &own);
#pragma clang loop unroll(full)
    for (int h = 0; h < w.halves; h++) {
      column_ints product[MOST_ROWS][VECTORS];
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++) {
        int32_t before = w.has_offset ? x[i].corrections[w.halves == 2 ? h : 2][block] * at->offset : 0;
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) product[i][v] = (column_ints){0} + before;
      }
#if defined __AVX512F__
#pragma clang loop unroll(full)
#else // which would take many instructions
#pragma clang loop unroll_count(2)
#endif
      for (int g = GROUPS / w.halves * h; g < GROUPS / w.halves * (h + 1); g++) {
        column_words codes[VECTORS];
#pragma clang loop unroll(full)
        for (int v = 0; v < vectors; v++) codes[v] = w.codes(at, b, (size_t)g, (size_t)v);
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++) {
          int32_t group = *(const unaligned_int *)(x[i].codes + block * BLOCK + 4 * (size_t)g);
#pragma clang loop unroll(full)
          for (int v = 0; v < vectors; v++) product[i][v] = dot_columns(product[i][v], codes[v], group, w.is_signed);
        }
      }
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; v++) {
        column_floats scale = *(const column_floats *)s[v].scales[h][place_of_scale];
#pragma clang loop unroll(full)
        for (int i = 0; i < rows; i++) {
          float of_x = x[i].scales[block];
          column_floats exact = __builtin_convertvector(product[i][v], column_floats);
          acc[i][v] = TIMES_PLUS(exact, scale * every_column(of_x), acc[i][v]);
          if (w.has_minima) {
            column_floats minimum = *(const column_floats *)s[v].minima[h][place_of_scale];
            column_floats factor = every_column(of_x * x[i].sums[w.halves == 2 ? h : 2][block]);
            acc[i][v] = TIMES_PLUS(-minimum, factor, acc[i][v]);
          }
        }
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; v++) sums.of[i][v] = acc[i][v];
  if (rows > 1)
    tl_store_sums(y, y_row, at, &sums, rows, vectors);
  else
    store_columns(y, at->columns, acc[0][0]);
}

// y of ROWS rows of x with unpacked codes: a vector of each group of each block, after another, of each of VECTORS vectors
// of columns; in interleaved_panel.c.
//   tl_panel_plain    weights without minima         tl_panel_signed   their codes are signed
//   tl_panel_minima   weights without an offset
//   ..._halves        two scales in a block, of 16 weights each
typedef void panel_rows(float *y, size_t y_row, const rounded *x, const place *at);
panel_rows tl_panel_plain, tl_panel_signed, tl_panel_minima, tl_panel_plain_halves, tl_panel_minima_halves;

// The same for as many groups of sixteen rows as there are, by the tiles of another library, src/tiles/panel_tiles.c; the
// number of those rows is returned. Rows of x are rounded rows of k elements, one after another. With fewer rows than
// LEAST_FOR_TILES, to configure the tiles and to copy the codes takes longer than they save.
//   tl_use_tiles   let this library call those functions: by the number of halves, and whether there are minima
//   tl_tiles_for   the function to call; null if there is none
enum { LEAST_FOR_TILES = 48 };
typedef size_t panel_tiles(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const place *at);
typedef panel_tiles *choose_tiles(int halves, int has_minima);
#if defined __AVX512F__
#define TAKES_TILES 1
EXPORT void tl_use_tiles(choose_tiles *others);
choose_tiles tl_tiles_for;
#else
#define TAKES_TILES 0
static inline panel_tiles *tl_tiles_for(int halves, int has_minima) {
  (void)halves, (void)has_minima;
  return 0;
}
#endif

#endif
