// Transposed copies of matrices, by squares of four by four elements.

#ifndef TALLOW_TRANSPOSE_H
#define TALLOW_TRANSPOSE_H

#include "runtime/vec.h"

// A vector of quads, of rows of which each is four below the last.
static inline vf quads_at(const float *src, size_t src_row) {
#define QUAD(i) (*(const quad *)(src + 4 * i * src_row))
#if LANES == 4
  return QUAD(0);
#else
  typedef float eight __attribute__((vector_size(32)));
  eight low = __builtin_shufflevector(QUAD(0), QUAD(1), 0, 1, 2, 3, 4, 5, 6, 7);
#if LANES == 8
  return low;
#else
  eight high = __builtin_shufflevector(QUAD(2), QUAD(3), 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
#undef QUAD
}

// In each quad: elements A and B of a, then elements C and D of b.
#if LANES == 4
#define IN_QUADS(a, b, A, B, C, D) __builtin_shufflevector(a, b, A, B, 4 + C, 4 + D)
#elif LANES == 8
#define IN_QUADS(a, b, A, B, C, D) __builtin_shufflevector(a, b, A, B, 8 + C, 8 + D, 4 + A, 4 + B, 12 + C, 12 + D)
#else
#define IN_QUADS(a, b, A, B, C, D)                                                                                       \
  __builtin_shufflevector(a, b, A, B, 16 + C, 16 + D, 4 + A, 4 + B, 20 + C, 20 + D, 8 + A, 8 + B, 24 + C, 24 + D,        \
                          12 + A, 12 + B, 28 + C, 28 + D)
#endif

// dst (4, LANES) = srcᵀ: the squares of a vector side by side
static inline void transpose_squares(float *dst, size_t dst_row, const float *src, size_t src_row) {
  vf row[4];
#pragma clang loop unroll(full)
  for (size_t i = 0; i < 4; i++) row[i] = quads_at(src + i * src_row, src_row);
  vf low[2] = {IN_QUADS(row[0], row[1], 0, 1, 0, 1), IN_QUADS(row[2], row[3], 0, 1, 0, 1)};
  vf high[2] = {IN_QUADS(row[0], row[1], 2, 3, 2, 3), IN_QUADS(row[2], row[3], 2, 3, 2, 3)};
  store(dst, IN_QUADS(low[0], low[1], 0, 2, 0, 2));
  store(dst + dst_row, IN_QUADS(low[0], low[1], 1, 3, 1, 3));
  store(dst + 2 * dst_row, IN_QUADS(high[0], high[1], 0, 2, 0, 2));
  store(dst + 3 * dst_row, IN_QUADS(high[0], high[1], 1, 3, 1, 3));
}

// Four numbers in each quad, whose sums over the quads are those of four vectors.
static inline vf sums_in_quads(vf a, vf b, vf c, vf d) {
  vf low[2] = {IN_QUADS(a, b, 0, 1, 0, 1), IN_QUADS(c, d, 0, 1, 0, 1)};
  vf high[2] = {IN_QUADS(a, b, 2, 3, 2, 3), IN_QUADS(c, d, 2, 3, 2, 3)};
  return (IN_QUADS(low[0], low[1], 0, 2, 0, 2) + IN_QUADS(low[0], low[1], 1, 3, 1, 3)) +
         (IN_QUADS(high[0], high[1], 0, 2, 0, 2) + IN_QUADS(high[0], high[1], 1, 3, 1, 3));
}

// The sums of four vectors.
static inline quad four_sums(vf a, vf b, vf c, vf d) {
  vf all = sums_in_quads(a, b, c, d);
#if LANES == 4
  return all;
#else
#if LANES == 16
  typedef float eight __attribute__((vector_size(32)));
  eight v = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
            __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  vf v = all;
#endif
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#endif
}

// dst (columns, rows) = srcᵀ
static __attribute__((noinline, unused)) void transpose(float *dst, size_t dst_row, const float *src, size_t src_row,
                                                        size_t rows, size_t columns) {
  size_t whole_rows = rows / LANES * LANES, whole_columns = columns / 4 * 4;
  for (size_t j = 0; j < whole_columns; j += 4)
    for (size_t i = 0; i < whole_rows; i += LANES)
      transpose_squares(dst + j * dst_row + i, dst_row, src + i * src_row + j, src_row);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = i < whole_rows ? whole_columns : 0; j < columns; j++) dst[j * dst_row + i] = src[i * src_row + j];
}

#endif
