// Interleave the blocks of groups of COLUMNS rows: interleaved.h says how.
//   tl_interleaved_columns  return the rows of a group; 0 if this library does not multiply interleaved blocks
//   tl_interleave           layout  rows and out (groups · COLUMNS, row_bytes) contiguous; row_bytes a multiple of unit_bytes,
//                                   the bytes of a block; half_place as in interleaved.h
//                           align   none needed       length  any
//                           alias   nothing overlaps
#include "quantized/interleaved.h"

EXPORT size_t tl_interleaved_columns(void) { return INTERLEAVES ? COLUMNS : 0; }

#if INTERLEAVES

void interleave_units(unsigned char *out, const unsigned char *rows, size_t row_bytes, size_t units, size_t unit_bytes,
                      int half_place, size_t columns) {
  typedef uint16_t half __attribute__((aligned(1), may_alias));
  typedef uint32_t word __attribute__((aligned(1), may_alias));
  const unsigned char *row[COLUMNS];
  for (size_t c = 0; c < COLUMNS; c++) row[c] = rows + smaller(c, columns - 1) * row_bytes;
  for (size_t at = 0; at < units * unit_bytes; at += unit_bytes) {
    size_t byte = at, end = at + unit_bytes / 4 * 4;
    if (half_place == HALF_BEFORE) {
      for (size_t c = 0; c < COLUMNS; c++, out += 2) *(half *)out = *(const half *)(row[c] + at);
      byte += 2, end += 2;
    }
    for (; byte < end; byte += 4)
#pragma clang loop unroll(full)
      for (size_t c = 0; c < COLUMNS; c++, out += 4) *(word *)out = *(const word *)(row[c] + byte);
    if (half_place == HALF_AFTER)
      for (size_t c = 0; c < COLUMNS; c++, out += 2) *(half *)out = *(const half *)(row[c] + end);
  }
}

EXPORT void tl_interleave(unsigned char *out, const unsigned char *rows, size_t groups, size_t row_bytes, size_t unit_bytes,
                          int half_place) {
  for (size_t i = 0; i < groups * COLUMNS * row_bytes; i += COLUMNS * row_bytes)
    interleave_units(out + i, rows + i, row_bytes, row_bytes / unit_bytes, unit_bytes, half_place, COLUMNS);
}

#endif
