// Elements along the middle axis of an array, at the places in an index.
//   tl_take_along_f32   y[o, i, j] = x[o, index[o, i, j], j]
//   tl_add_along_f32    x[o, index[o, i, j], j] += y[o, i, j], in the order of o, i and j
//   layout  x (outer, size, width) and y (outer, count, width) row-major contiguous, of whose slices the first `inner` ≤ width
//           elements take part; the index broadcast to (outer, count, inner), with a step for each axis, in elements; 0 ≤
//           index < size
//   align   none needed       length  any
//   alias   nothing overlaps
//   error   tl_add_along_f32 sums in order: ≤ uses ulp of the sum of magnitudes, for an element that is used so often
//   threads calls that write other elements may run at once
#include "runtime/vec.h"

typedef struct {
  size_t outer, size, count, inner, width, by_outer, by_count, by_inner;
} shape;

static inline __attribute__((always_inline)) void move(float *x, float *y, int adds) {
  if (adds)
    *x += *y;
  else
    *y = *x;
}

static inline __attribute__((always_inline)) void along(float *x, float *y, const int64_t *index, shape s, int adds) {
  for (size_t o = 0; o < s.outer; o++, x += s.size * s.width, y += s.count * s.width) {
    const int64_t *places = index + o * s.by_outer;
    if (s.width == 1) {
      for (size_t i = 0; i < s.count; i++) move(x + places[i * s.by_count], y + i, adds);
      continue;
    }
    for (size_t i = 0; i < s.count; i++, places += s.by_count) {
      float *row = y + i * s.width;
      size_t j = 0;
      if (s.by_inner == 0) {
        float *slice = x + (size_t)*places * s.width;
        for (; j + LANES <= s.inner; j += LANES)
          if (adds)
            store(slice + j, load(slice + j) + load(row + j));
          else
            store(row + j, load(slice + j));
      }
      for (; j < s.inner; j++) move(x + (size_t)places[j * s.by_inner] * s.width + j, row + j, adds);
    }
  }
}

EXPORT void tl_take_along_f32(float *x, float *y, const int64_t *index, size_t outer, size_t size, size_t count, size_t inner,
                              size_t width, size_t by_outer, size_t by_count, size_t by_inner) {
  along(x, y, index, (shape){outer, size, count, inner, width, by_outer, by_count, by_inner}, 0);
}

EXPORT void tl_add_along_f32(float *x, float *y, const int64_t *index, size_t outer, size_t size, size_t count, size_t inner,
                             size_t width, size_t by_outer, size_t by_count, size_t by_inner) {
  along(x, y, index, (shape){outer, size, count, inner, width, by_outer, by_count, by_inner}, 1);
}
