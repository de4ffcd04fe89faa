// Products of a sparse matrix A (rows, m) in compressed rows: entry e, crow[r] ≤ e < crow[r + 1], is values[e] in column col[e].
//
// The body of csr_f32.c and csr_f64.c. The file that includes this defines REAL, the element type, and NAME(product).
//
//   product        y[r, :] = Σ_e values[e] x[col[e], :]             for first ≤ r < last
//   transposed     y[col[e], :] += values[e] x[r, :]                in the columns first ≤ j < last, for all rows
//   sampled        y[e] = Σ_j g[r, j] x[col[e], j]                  for the entries of first ≤ r < last
//
//   layout  crow (rows + 1,), col (count,) int64; the dense matrices row-major contiguous with n columns
//   places  *bad = 1, and y is undefined, unless crow ascends from 0 to count and 0 ≤ col < m
//   align   none needed       length  any
//   alias   y overlaps nothing
//   error   ≤ count ulp of the sum of magnitudes; `sampled` ≤ (n / LANES + LANES) ulp
//   threads calls with other [first, last) may run at once; the result does not depend on the parts
#include "runtime/vec.h"

enum { PER_VECTOR = 4 * LANES / (int)sizeof(REAL), TILE = 4, AHEAD = 8, BLOCK = 2048 };

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

// The product of one row with column j of x, summed in four chains.
static inline __attribute__((always_inline)) REAL row_one(const REAL *values, const int64_t *col, size_t count, const REAL *x,
                                                          size_t n, size_t j) {
  REAL acc[4] = {0};
  size_t e = 0;
  for (; e + 4 <= count; e += 4) {
#pragma clang loop unroll(full)
    for (size_t u = 0; u < 4; u++) acc[u] += values[e + u] * x[(size_t)col[e + u] * n + j];
  }
  for (; e < count; e++) acc[0] += values[e] * x[(size_t)col[e] * n + j];
  return acc[0] + acc[1] + (acc[2] + acc[3]);
}

// The columns [j, j + left) of one row of y in two chains, left ≤ LENGTH. If is_exact, left = LENGTH; otherwise LENGTH elements
// of x are read, but for the last ones of its `size`.
#define ROW_FEW(LENGTH)                                                                                                      \
  typedef REAL few_##LENGTH __attribute__((vector_size(LENGTH * sizeof(REAL))));                                             \
  typedef REAL few_unaligned_##LENGTH __attribute__((vector_size(LENGTH * sizeof(REAL)), aligned(sizeof(REAL))));            \
  static inline __attribute__((always_inline)) few_##LENGTH part_##LENGTH(const REAL *x, size_t at, size_t size,             \
                                                                          size_t left, int is_exact) {                       \
    if (is_exact || at + LENGTH <= size) return *(const few_unaligned_##LENGTH *)(x + at);                                   \
    few_##LENGTH part = {0};                                                                                                 \
    for (size_t u = 0; u < left; u++) part[u] = x[at + u];                                                                   \
    return part;                                                                                                             \
  }                                                                                                                          \
  static inline __attribute__((always_inline)) void row_few_##LENGTH(                                                        \
      REAL *y, const REAL *values, const int64_t *col, size_t count, const REAL *x, size_t size, size_t n, size_t j,         \
      size_t left, int is_exact) {                                                                                           \
    few_##LENGTH even = {0}, odd = {0};                                                                                      \
    size_t e = 0;                                                                                                            \
    for (; e + 2 <= count; e += 2) {                                                                                         \
      even += values[e] * part_##LENGTH(x, (size_t)col[e] * n + j, size, left, is_exact);                                    \
      odd += values[e + 1] * part_##LENGTH(x, (size_t)col[e + 1] * n + j, size, left, is_exact);                             \
    }                                                                                                                        \
    if (e < count) even += values[e] * part_##LENGTH(x, (size_t)col[e] * n + j, size, left, is_exact);                       \
    even += odd;                                                                                                             \
    if (is_exact)                                                                                                            \
      *(few_unaligned_##LENGTH *)(y + j) = even;                                                                             \
    else                                                                                                                     \
      for (size_t u = 0; u < left; u++) y[j + u] = even[u];                                                                  \
  }

ROW_FEW(2)
ROW_FEW(4)
ROW_FEW(8)
ROW_FEW(16)

// The columns from j on, at most a vector.
static inline void row_rest(REAL *y, const REAL *values, const int64_t *col, size_t count, const REAL *x, size_t size, size_t n,
                            size_t j) {
  size_t left = n - j;
  switch (left) {
  case 1: y[j] = n == 1 ? row_one(values, col, count, x, 1, 0) : row_one(values, col, count, x, n, j); break;
  case 2: row_few_2(y, values, col, count, x, size, n, j, 2, 1); break;
  case 3: row_few_4(y, values, col, count, x, size, n, j, 3, 0); break;
  case 4: row_few_4(y, values, col, count, x, size, n, j, 4, 1); break;
  default:
    if (PER_VECTOR >= 8 && left == 8)
      row_few_8(y, values, col, count, x, size, n, j, 8, 1);
    else if (PER_VECTOR >= 8 && left < 8)
      row_few_8(y, values, col, count, x, size, n, j, left, 0);
    else if (PER_VECTOR >= 16 && left == 16)
      row_few_16(y, values, col, count, x, size, n, j, 16, 1);
    else if (PER_VECTOR >= 16)
      row_few_16(y, values, col, count, x, size, n, j, left, 0);
  }
}

// The row after a block of rows from r on, whose places stay in the nearest cache; r if one of them is wrong.
static size_t checked_block(const int64_t *crow, const int64_t *col, size_t r, size_t last, size_t count, size_t m) {
  uint64_t start = (uint64_t)crow[r], end = start, outside = 0;
  size_t until = r;
  for (; until < last && end - start < BLOCK; until++) {
    uint64_t next = (uint64_t)crow[until + 1];
    if (next < end || next > count) return r;
    end = next;
  }
  for (uint64_t e = start; e < end; e++) outside |= (uint64_t)col[e] | ((uint64_t)m - 1 - (uint64_t)col[e]);
  return outside >> 63 ? r : until;
}

EXPORT void NAME(matmul)(REAL *y, const REAL *values, const int64_t *crow, const int64_t *col, const REAL *x, int64_t *bad,
                         size_t first, size_t last, size_t n, size_t count, size_t m) {
  for (size_t r = first, until; r < last;) {
    if ((until = checked_block(crow, col, r, last, count, m)) == r) {
      *bad = 1;
      return;
    }
    for (; r < until; r++) {
      size_t start = (size_t)crow[r], entries = (size_t)crow[r + 1] - start, j = 0;
      size_t ahead = count - start - entries; // entries after this row, also of rows that are not checked yet
      for (; j + TILE * PER_VECTOR <= n; j += TILE * PER_VECTOR)
        row_tile(y + r * n, values + start, col + start, entries, ahead, x, n, j, TILE);
      if (j + 2 * PER_VECTOR <= n) {
        row_tile(y + r * n, values + start, col + start, entries, ahead, x, n, j, 2);
        j += 2 * PER_VECTOR;
      }
      if (j + PER_VECTOR < n) {
        row_tile(y + r * n, values + start, col + start, entries, ahead, x, n, j, 1);
        j += PER_VECTOR;
      }
      if (j < n) row_rest(y + r * n, values + start, col + start, entries, x, m * n, n, j);
    }
  }
}

// Add the columns [first, last) of one row of x, times its entries, to those of y.
static inline __attribute__((always_inline)) void scatter(REAL *y, const REAL *values, const int64_t *col, size_t count,
                                                          const REAL *row, size_t first, size_t last, size_t n) {
  for (size_t e = 0; e < count; e++) {
    REAL *to = y + (size_t)col[e] * n;
    size_t j = first;
    for (; j + PER_VECTOR <= last; j += PER_VECTOR)
      store_reals(to + j, load_reals(to + j) + values[e] * load_reals(row + j));
    for (; j < last; j++) to[j] += values[e] * row[j];
  }
}

// The same for all of N columns: a small constant, so that the row stays in registers.
static inline __attribute__((always_inline)) void scatter_few(REAL *y, const REAL *values, const int64_t *col, size_t count,
                                                              const REAL *row, size_t n) {
  REAL kept[8];
#pragma clang loop unroll(full)
  for (size_t j = 0; j < n; j++) kept[j] = row[j];
  for (size_t e = 0; e < count; e++) {
    REAL *to = y + (size_t)col[e] * n;
#pragma clang loop unroll(full)
    for (size_t j = 0; j < n; j++) to[j] += values[e] * kept[j];
  }
}

EXPORT void NAME(matmul_transposed)(REAL *y, const REAL *values, const int64_t *crow, const int64_t *col, const REAL *x,
                                    int64_t *bad, size_t first, size_t last, size_t rows, size_t n, size_t count, size_t m) {
  for (size_t r = 0, until; r < rows;) {
    if ((until = checked_block(crow, col, r, rows, count, m)) == r) {
      *bad = 1;
      return;
    }
#define EACH_ROW(FUNCTION, ...)                                                                                              \
  for (; r < until; r++)                                                                                                     \
    FUNCTION(y, values + crow[r], col + crow[r], (size_t)(crow[r + 1] - crow[r]), x + r * n, __VA_ARGS__)
    switch (last - first == n ? n : 0) {
    case 1: EACH_ROW(scatter_few, 1); break;
    case 2: EACH_ROW(scatter_few, 2); break;
    case 3: EACH_ROW(scatter_few, 3); break;
    case 4: EACH_ROW(scatter_few, 4); break;
    case 5: EACH_ROW(scatter_few, 5); break;
    case 6: EACH_ROW(scatter_few, 6); break;
    case 7: EACH_ROW(scatter_few, 7); break;
    default: EACH_ROW(scatter, first, last, n);
    }
#undef EACH_ROW
  }
}

EXPORT void NAME(sampled)(REAL *y, const REAL *g, const int64_t *crow, const int64_t *col, const REAL *x, int64_t *bad,
                          size_t first, size_t last, size_t n, size_t count, size_t m) {
  for (size_t r = first, until; r < last;) {
    if ((until = checked_block(crow, col, r, last, count, m)) == r) {
      *bad = 1;
      return;
    }
    for (; r < until; r++)
      for (size_t e = (size_t)crow[r]; e < (size_t)crow[r + 1]; e++) {
        const REAL *a = g + r * n, *b = x + (size_t)col[e] * n;
        REAL total = 0;
        size_t j = 0;
        if (n >= PER_VECTOR) {
          vr acc = {0};
          for (; j + PER_VECTOR <= n; j += PER_VECTOR) acc += load_reals(a + j) * load_reals(b + j);
          for (int u = 0; u < PER_VECTOR; u++) total += acc[u];
        }
        for (; j < n; j++) total += a[j] * b[j];
        y[e] = total;
      }
  }
}
