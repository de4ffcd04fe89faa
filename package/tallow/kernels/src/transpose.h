// Transposed copies of matrices, by squares of four elements.

#ifndef TALLOW_TRANSPOSE_H
#define TALLOW_TRANSPOSE_H

#include "vec.h"

typedef float quad __attribute__((vector_size(16), aligned(4)));

// dst (4, 4) = srcᵀ
static inline void transpose_4x4(float *dst, size_t dst_row, const float *src, size_t src_row) {
  quad a = *(const quad *)src, b = *(const quad *)(src + src_row);
  quad c = *(const quad *)(src + 2 * src_row), d = *(const quad *)(src + 3 * src_row);
  quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(quad *)dst = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(quad *)(dst + dst_row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *(quad *)(dst + 2 * dst_row) = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
  *(quad *)(dst + 3 * dst_row) = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

// dst (columns, rows) = srcᵀ
static __attribute__((noinline)) void transpose(float *dst, size_t dst_row, const float *src, size_t src_row, size_t rows, size_t columns) {
  size_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (size_t j = 0; j < whole_columns; j += 4)
    for (size_t i = 0; i < whole_rows; i += 4)
      transpose_4x4(dst + j * dst_row + i, dst_row, src + i * src_row + j, src_row);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = i < whole_rows ? whole_columns : 0; j < columns; j++) dst[j * dst_row + i] = src[i * src_row + j];
}

#endif
