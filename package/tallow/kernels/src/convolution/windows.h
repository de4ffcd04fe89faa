// Sliding windows along one dim: which of them have a given position inside the data.

#ifndef TALLOW_WINDOWS_H
#define TALLOW_WINDOWS_H

#include "runtime/vec.h"

typedef struct {
  size_t from, to;
} range;

// Window j begins at element j * stride - before of `size`, and the position is `reach` elements further. Of `count`
// windows, those from `from` to `to` have it inside. Divisions are needed only at the edges.
static inline range inside(size_t reach, size_t before, size_t size, size_t stride, size_t count) {
  size_t from = before > reach ? (before - reach + stride - 1) / stride : 0, to = count;
  if (from >= count) return (range){count, count};
  if ((count - 1) * stride + reach >= size + before) to = size + before > reach ? (size + before - reach + stride - 1) / stride : 0;
  return (range){from, to < from ? from : to};
}

// Return the element at a position of window j, or -1 if it is outside.
static inline ptrdiff_t element_at(size_t j, size_t reach, size_t before, size_t size, size_t stride) {
  size_t at = j * stride + reach;
  return at < before || at - before >= size ? -1 : (ptrdiff_t)(at - before);
}

#endif
