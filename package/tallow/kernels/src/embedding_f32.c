// tl_take_rows_f32   y[n, :] = table[index[n], :] for n in first .. last - 1
// tl_add_rows_f32    table[index[n], j] += g[n, j] for j in first .. last - 1 and all n, in order
//   layout  table (V, width), y and g (rows, width) row-major contiguous, index (rows,) contiguous, 0 ≤ index < V
//   align   none needed       length  any
//   alias   nothing overlaps
//   error   tl_add_rows_f32 sums in order: ≤ uses ulp of the sum of magnitudes, for a row that is used so often
//   threads calls with other rows, or other columns, may run at once
#include "vec.h"

EXPORT void tl_take_rows_f32(float *y, const float *table, const int64_t *index, size_t first, size_t last, size_t width);
EXPORT void tl_add_rows_f32(float *table, const float *g, const int64_t *index, size_t first, size_t last, size_t rows,
                            size_t width);

void tl_take_rows_f32(float *y, const float *table, const int64_t *index, size_t first, size_t last, size_t width) {
  for (size_t n = first; n < last; n++) {
    const float *from = table + (size_t)index[n] * width;
    float *to = y + n * width;
    size_t i = 0;
    for (; i + LANES <= width; i += LANES) store(to + i, load(from + i));
    for (; i < width; i++) to[i] = from[i];
  }
}

void tl_add_rows_f32(float *table, const float *g, const int64_t *index, size_t first, size_t last, size_t rows,
                     size_t width) {
  for (size_t n = 0; n < rows; n++, g += width) {
    float *to = table + (size_t)index[n] * width;
    size_t i = first;
    for (; i + LANES <= last; i += LANES) store(to + i, load(to + i) + load(g + i));
    for (; i < last; i++) to[i] += g[i];
  }
}
