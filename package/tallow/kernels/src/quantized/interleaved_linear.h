// Products of rounded rows of x with interleaved blocks (interleaved.h), for targets with AVX2: included by
// quantized_linear.h, which has the contract and says what a format defines.
//
// Fewer than MANY rows of x take the codes from the blocks, whose scales are read as they come: w comes from memory, best in
// its order. For more rows, codes and scales of DEPTH weights of VECTORS · COLUMNS columns are unpacked once for all of them.
// Tiles multiply sixteen of LEAST_FOR_TILES rows and more at a time, where there are tiles.
// Rows of w that are not interleaved are interleaved first, DEPTH weights of COLUMNS rows at a time.
#include "quantized/column_tile.h"

#if defined __AVX512F__
enum { MANY = 24 };
#else // unpacks for less, as that takes fewer instructions
enum { MANY = ROWS };
#endif
enum { AHEAD = 4096, BLOCK_BYTES = UNIT_BYTES * COLUMNS / UNIT_BLOCKS }; // AHEAD: bytes of w to prefetch

// Codes that dot_unsigned does not take are signed.
enum { SIGNED_CODES = !HAS_DPBUSD && OFFSET == 128 };

// Write the scales, and minima, of a block of the format: of 32 weights each, from block `first` on.
static inline void interleaved_scales(column_scales *s, const unsigned char *w, size_t first);
// Return the codes [4 group, 4 group + 4) of 32 weights; w are the words of a block of the format.
static inline column_words interleaved_codes(const column_words *w, size_t block, size_t group);

static inline const unsigned char *unit_at(const place *at, size_t block) {
  return at->w + block / UNIT_BLOCKS * UNIT_BYTES * COLUMNS;
}

static inline column_words codes_at(const place *at, size_t block, size_t group, size_t vector) {
  (void)vector; // the only one
  const unsigned char *words = unit_at(at, block) + (HALF_PLACE == HALF_BEFORE ? 2 * COLUMNS : 0);
  return interleaved_codes((const column_words *)words, block % UNIT_BLOCKS, group);
}

static __attribute__((noinline)) void many_scales(column_scales *s, const unsigned char *w, size_t first) {
  interleaved_scales(s, w, first);
}

static inline size_t read_scales(const place *at, size_t block, column_scales *own) {
  const unsigned char *unit = unit_at(at, block);
  for (size_t line = 0; line < BLOCK_BYTES; line += 64)
    __builtin_prefetch(unit + AHEAD + block % UNIT_BLOCKS * BLOCK_BYTES + line);
  if (block % UNIT_BLOCKS == 0) (UNIT_BLOCKS == 1 ? interleaved_scales : many_scales)(own, unit, 0);
  return block % UNIT_BLOCKS;
}

#define READER ((reader){codes_at, read_scales, HALVES, OFFSET > 0 && !SIGNED_CODES, SIGNED_CODES, HAS_MINIMA, 1})

#define TILE(NAME, rows)                                                                                                 \
  static __attribute__((noinline)) void NAME(float *y, size_t y_row, const rounded *x, const place *at) {                \
    column_tile(y, y_row, x, at, rows, 1, READER);                                                                       \
  }

TILE(one_row, 1)
#if defined __AVX512F__
TILE(four_rows, 4) TILE(eight_rows, 8)
#endif

static __attribute__((noinline)) void unpack(column_words *codes, column_scales *s, const place *at) {
#pragma clang loop unroll(disable)
  for (size_t b = 0; b < at->blocks; b++) {
    if (b % UNIT_BLOCKS == 0) (UNIT_BLOCKS == 1 ? interleaved_scales : many_scales)(s, unit_at(at, b), b);
    for (size_t g = 0; g < GROUPS; g++) codes[(b * GROUPS + g) * VECTORS] = codes_at(at, b, g, 0);
  }
}

// Fewer than MANY rows of x with one vector of columns.
static __attribute__((noinline)) void times_columns(float *y, size_t y_row, const rounded *x, size_t m, const place *at) {
  size_t i = 0;
#if defined __AVX512F__
  for (; i + 8 <= m; i += 8) eight_rows(y + i * y_row, y_row, x + i, at);
  for (; i + 4 <= m; i += 4) four_rows(y + i * y_row, y_row, x + i, at);
#endif
  for (; i < m; i++) one_row(y + i * y_row, y_row, x + i, at);
}

// At least MANY rows, with VECTORS vectors of columns: `at` of each. `next` are the blocks to come, of each vector.
static void times_panel(float *y, size_t y_row, const unsigned char *x, size_t m, size_t k, const place *at,
                        const unsigned char *const *next) {
  panel_rows *of_panel = HAS_MINIMA     ? HALVES == 1 ? tl_panel_minima : tl_panel_minima_halves
                         : HALVES == 2  ? tl_panel_plain_halves
                         : SIGNED_CODES ? tl_panel_signed
                                        : tl_panel_plain;
  column_words codes[BLOCKS * GROUPS * VECTORS];
  column_scales s[VECTORS];
#pragma clang loop unroll(disable)
  for (size_t v = 0; v < VECTORS; v++) unpack(codes + v, s + v, at + v);
  place panel = *at;
  panel.w = (const unsigned char *)codes;
  panel.scales = s;
  for (size_t v = 1; v < VECTORS; v++) panel.columns += at[v].columns;
  rounded rows[ROWS];
  size_t i = 0;
  panel_tiles *tiles = m < LEAST_FOR_TILES ? 0 : tl_tiles_for(HALVES, HAS_MINIMA);
  if (tiles) {
    panel.next_of = next;
    panel.next_bytes = (BLOCK_BYTES + 63) / 64 * 64;
    i = tiles(y, y_row, x, m, k, &panel);
    next = 0;
  }
  for (; i + ROWS <= m; i += ROWS) {
    // The first tiles prefetch a part each.
    enum { PARTS = MANY / ROWS / VECTORS, PART_BYTES = (BLOCK_BYTES / PARTS + 63) / 64 * 64 };
    size_t tile = i / ROWS, part = tile / VECTORS;
    panel.next_bytes = next && part < PARTS ? PART_BYTES : 0;
    if (panel.next_bytes) panel.next = next[tile % VECTORS] + part * PART_BYTES * at->blocks;
    tl_read_rows(rows, x + i * rounded_bytes(k), ROWS, k);
    of_panel(y + i * y_row, y_row, rows, &panel);
  }
  tl_read_rows(rows, x + i * rounded_bytes(k), m - i, k);
#pragma clang loop unroll(disable)
  for (size_t v = 0; v < VECTORS; v++)
    if (at[v].columns) times_columns(y + i * y_row + v * COLUMNS, y_row, rows, m - i, at + v);
}

static __attribute__((noinline)) void quantized_linear(float *y, const unsigned char *x, const unsigned char *w,
                                                       const float *bias, size_t m, size_t k, size_t n, size_t y_row,
                                                       int is_interleaved) {
  unsigned char buffer[VECTORS][DEPTH / UNIT * UNIT_BYTES * COLUMNS];
  size_t row_bytes = k / UNIT * UNIT_BYTES, vectors = m < MANY ? 1 : VECTORS;
  rounded few[MANY];
  if (m < MANY) tl_read_rows(few, x, m, k);
  for (size_t j = 0; j < n; j += COLUMNS * vectors) {
    // Blocks that are multiplied where they are need not be divided.
    size_t first = 0, most = m < MANY && is_interleaved && n - j >= COLUMNS ? k / BLOCK : BLOCKS;
    do { // also once for k = 0
      place at[VECTORS];
      const unsigned char *next[VECTORS];
      size_t blocks = smaller(most, k / BLOCK - first), start = first / UNIT_BLOCKS * UNIT_BYTES;
#pragma clang loop unroll(disable)
      for (size_t v = 0; v < vectors; v++) {
        size_t from = j + v * COLUMNS, columns = from < n ? smaller(COLUMNS, n - from) : 0;
        const unsigned char *rows = w + (columns ? from : j) * row_bytes; // a vector that is lacking is a copy
        int ready = is_interleaved && columns == COLUMNS;
        at[v] = (place){.first = first, .blocks = blocks, .columns = columns, .offset = OFFSET};
        if (bias && columns) at[v].bias = bias + from;
        at[v].w = ready ? rows + start * COLUMNS : buffer[v];
        if (!ready)
          interleave_units(buffer[v], rows + start, row_bytes, blocks / UNIT_BLOCKS, UNIT_BYTES, HALF_PLACE,
                           columns ? columns : smaller(COLUMNS, n - j));
        next[v] = first + most < k / BLOCK ? at[v].w + blocks * BLOCK_BYTES : rows + vectors * COLUMNS * row_bytes;
      }
      if (m < MANY)
        times_columns(y + j, y_row, few, m, at);
      else
        times_panel(y + j, y_row, x, m, k, at, is_interleaved ? next : 0);
    } while ((first += most) < k / BLOCK);
  }
}
