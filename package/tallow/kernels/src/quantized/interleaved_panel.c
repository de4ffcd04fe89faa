// Products of ROWS rows of x with unpacked codes; contract in column_tile.h.
#include "quantized/quantized.h"

#if INTERLEAVES
#include "quantized/column_tile.h"

void tl_begin_sums(tile_sums *sums, const float *y, size_t y_row, const place *at, int rows, int vectors) {
  for (int v = 0; v < vectors; v++) {
    column_floats start = start_of(y, at, (size_t)v);
    for (int i = 0; i < rows; i++) sums->of[i][v] = i && at->first ? start_of(y + (size_t)i * y_row, at, (size_t)v) : start;
  }
}

void tl_store_sums(float *y, size_t y_row, const place *at, const tile_sums *sums, int rows, int vectors) {
  for (int v = 0; v < vectors; v++) {
    size_t columns = columns_of_vector(at, (size_t)v);
    for (int i = 0; i < rows; i++) store_columns(y + (size_t)i * y_row + v * COLUMNS, columns, sums->of[i][v]);
  }
}

#if TAKES_TILES
static choose_tiles *chosen; // null without tiles

void tl_use_tiles(choose_tiles *others) { chosen = others; }

panel_tiles *tl_tiles_for(int halves, int has_minima) { return chosen ? chosen(halves, has_minima) : 0; }
#endif

void tl_read_rows(rounded *rows, const unsigned char *x, size_t m, size_t k) {
  for (size_t r = 0; r < m; r++) rows[r] = rounded_row(x + r * rounded_bytes(k), k);
}

static inline column_words unpacked_codes(const place *at, size_t block, size_t group, size_t vector) {
  return ((const column_words *)at->w)[(block * GROUPS + group) * VECTORS + vector];
}

static inline size_t same_block(const place *at, size_t block, column_scales *own) {
  (void)own;
  for (size_t line = 0; line < at->next_bytes; line += 64) __builtin_prefetch(at->next + block * at->next_bytes + line);
  return block;
}

#define PANEL_ROWS(NAME, halves, has_offset, is_signed, has_minima)                                                      \
  void NAME(float *y, size_t y_row, const rounded *x, const place *at) {                                                 \
    column_tile(y, y_row, x, at, ROWS, VECTORS,                                                                          \
                (reader){unpacked_codes, same_block, halves, has_offset, is_signed, has_minima, 0});                     \
  }

PANEL_ROWS(tl_panel_plain, 1, 1, 0, 0)
PANEL_ROWS(tl_panel_plain_halves, 2, 1, 0, 0)
PANEL_ROWS(tl_panel_minima, 1, 0, 0, 1)
PANEL_ROWS(tl_panel_minima_halves, 2, 0, 0, 1)
#if !HAS_DPBUSD
PANEL_ROWS(tl_panel_signed, 1, 0, 1, 0)
#endif
#endif
