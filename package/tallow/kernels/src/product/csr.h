// Products of a sparse matrix A (rows, m) in compressed rows: entry e, crow[r] ≤ e < crow[r + 1], is values[e] in column col[e].
//
// The body of csr_f32.c and csr_f64.c. The file that includes this defines REAL, the element type, and NAME(product).
//
//   product        y[r, :] = Σ_e values[e] x[col[e], :]             for first ≤ r < last
//   transposed     y[col[e], :] += values[e] x[r, :]                in the columns first ≤ j < last, for all rows
//   sampled        y[e] = Σ_j g[r, j] x[col[e], j]                  for the entries of first ≤ r < last
//
//   layout  crow (rows + 1,) ascending, col int64; the dense matrices row-major contiguous with n columns; 0 ≤ col < m
//   align   none needed       length  any
//   alias   y overlaps nothing
//   error   sums in order of the entries: ≤ count ulp of the sum of magnitudes; `sampled` ≤ (n / LANES + LANES) ulp
//   threads calls with other [first, last) may run at once; the result does not depend on the parts
#include "runtime/vec.h"

enum { PER_VECTOR = 4 * LANES / (int)sizeof(REAL), TILE = 4, AHEAD = 8 };

typedef REAL vr __attribute__((vector_size(4 * LANES)));
typedef REAL vr_unaligned __attribute__((vector_size(4 * LANES), aligned(sizeof(REAL))));

static inline vr load_reals(const REAL *p) { return *(const vr_unaligned *)p; }
static inline void store_reals(REAL *p, vr v) { *(vr_unaligned *)p = v; }

// The columns [j, j + vectors * PER_VECTOR) of one row of y, summed in registers.
static inline __attribute__((always_inline)) void row_tile(REAL *y, const REAL *values, const int64_t *col, size_t count,
                                                           size_t ahead, const REAL *x, size_t n, size_t j, int vectors) {
  vr acc[TILE] = {0};
  for (size_t e = 0; e < count; e++) {
    if (e + AHEAD < count + ahead) __builtin_prefetch(x + (size_t)col[e + AHEAD] * n + j);
    const REAL *row = x + (size_t)col[e] * n + j;
    vr factor = values[e] - (vr){0};
#pragma clang loop unroll(full)
    for (int u = 0; u < vectors; u++) acc[u] += factor * load_reals(row + u * PER_VECTOR);
  }
#pragma clang loop unroll(full)
  for (int u = 0; u < vectors; u++) store_reals(y + j + u * PER_VECTOR, acc[u]);
}

// The columns from j on, fewer than a vector.
static inline void row_rest(REAL *y, const REAL *values, const int64_t *col, size_t count, const REAL *x, size_t n, size_t j) {
  REAL acc[PER_VECTOR] = {0};
  size_t left = n - j;
  for (size_t e = 0; e < count; e++) {
    const REAL *row = x + (size_t)col[e] * n + j;
    for (size_t u = 0; u < left; u++) acc[u] += values[e] * row[u];
  }
  for (size_t u = 0; u < left; u++) y[j + u] = acc[u];
}

EXPORT void NAME(matmul)(REAL *y, const REAL *values, const int64_t *crow, const int64_t *col, const REAL *x, size_t first,
                         size_t last, size_t n) {
  size_t end = (size_t)crow[last];
  for (size_t r = first; r < last; r++) {
    size_t start = (size_t)crow[r], count = (size_t)crow[r + 1] - start, j = 0;
    size_t ahead = end - start - count; // entries of the part after this row
    for (; j + TILE * PER_VECTOR <= n; j += TILE * PER_VECTOR)
      row_tile(y + r * n, values + start, col + start, count, ahead, x, n, j, TILE);
    if (j + 2 * PER_VECTOR <= n) {
      row_tile(y + r * n, values + start, col + start, count, ahead, x, n, j, 2);
      j += 2 * PER_VECTOR;
    }
    if (j + PER_VECTOR <= n) {
      row_tile(y + r * n, values + start, col + start, count, ahead, x, n, j, 1);
      j += PER_VECTOR;
    }
    if (j < n) row_rest(y + r * n, values + start, col + start, count, x, n, j);
  }
}

EXPORT void NAME(matmul_transposed)(REAL *y, const REAL *values, const int64_t *crow, const int64_t *col, const REAL *x,
                                    size_t first, size_t last, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; r++) {
    const REAL *row = x + r * n;
    for (size_t e = (size_t)crow[r]; e < (size_t)crow[r + 1]; e++) {
      REAL *to = y + (size_t)col[e] * n;
      size_t j = first;
      for (; j + PER_VECTOR <= last; j += PER_VECTOR)
        store_reals(to + j, load_reals(to + j) + values[e] * load_reals(row + j));
      for (; j < last; j++) to[j] += values[e] * row[j];
    }
  }
}

EXPORT void NAME(sampled)(REAL *y, const REAL *g, const int64_t *crow, const int64_t *col, const REAL *x, size_t first,
                          size_t last, size_t n) {
  for (size_t r = first; r < last; r++)
    for (size_t e = (size_t)crow[r]; e < (size_t)crow[r + 1]; e++) {
      const REAL *a = g + r * n, *b = x + (size_t)col[e] * n;
      vr acc = {0};
      size_t j = 0;
      for (; j + PER_VECTOR <= n; j += PER_VECTOR) acc += load_reals(a + j) * load_reals(b + j);
      REAL total = 0;
      for (int u = 0; u < PER_VECTOR; u++) total += acc[u];
      for (; j < n; j++) total += a[j] * b[j];
      y[e] = total;
    }
}
