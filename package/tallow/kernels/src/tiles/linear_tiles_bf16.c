// y = x @ wᵀ + bias, all in bfloat16 but the sums and the bias, which are float32: by the matrix tiles of AMX, or by the dot
// products of AVX512-BF16
//   tl_tiles_pack         x (m, k) -> packed, tl_tiles_packed_bytes(m, k): panels of sixteen rows, whose pairs of elements
//                         are transposed. A part of x that begins at a multiple of 32 rows has a part of `packed`
//   tl_tiles_linear_bf16  the product of packed rows with w (n, k), which is read where it is
//   layout  rows of x x_row apart, of w w_row, of y y_row; elements of a row contiguous; bias (n,) may be null
//   scratch tl_tiles_linear_scratch(k) floats, contents irrelevant
//   align   x, w and y at addresses for uint16_t, packed at a cache line     length  any m, n ≥ 1, k ≥ 1
//   alias   nothing overlaps
//   error   ≤ (k / 2 + 2) ulp of Σ|x||w| in float32, then y is rounded to the nearest, ties to even; as both do, subnormal
//           operands and results are 0
//
// The left operand of a tile product has rows as they are, the right one pairs of elements of sixteen columns. So rows of w
// are the left one: only x, which is smaller, is packed, and w needs no second copy of all its memory.
//
//             x: STEP elements of 32 rows          32 rows of w at a time are copied to lie one after another, with zeros
//           ┌────┬────┐                            after the last element, and stay in L2 while the panels of x are read;
//     w     │ m0 │ m1 │                            as many panels of x as fit into L2, too, stay for all of w.
//   ┌────┐  ├────┼────┤
//   │ n0 │  │yᵀ00│yᵀ01│   two tiles of w, two of x, and four of sums: eight
//   │ n1 │  │yᵀ10│yᵀ11│
//   └────┘  └────┴────┘   yᵀ is rounded, then transposed as pairs
//
// Without AMX, the sums of eight rows of w and of both tiles of x are in sixteen registers.
#include "tiles/tiles.h"

#if HAS_DOTS

enum { STEP = 32, BOTH = 2 * TILE, PACKED_BYTES = 1 << 20 }; // PACKED_BYTES: of x, which stay in L2

static inline size_t steps_of(size_t k) { return (k + STEP - 1) / STEP; }

EXPORT size_t tl_tiles_packed_bytes(size_t m, size_t k) { return rounded_up(m, BOTH) * steps_of(k) * LINE; }

EXPORT size_t tl_tiles_linear_scratch(size_t k) {
  return (steps_of(k) * BOTH + 1) * LINE / sizeof(float); // and what aligns it
}

EXPORT void tl_tiles_pack(uint16_t *packed, const uint16_t *x, size_t m, size_t k, size_t x_row) {
  size_t steps = steps_of(k);
  for (size_t i = 0; i < rounded_up(m, BOTH); i += TILE)
    for (size_t s = 0; s < steps; s++, packed += TILE_BYTES / sizeof *packed) {
      sixteen_words v[TILE];
#pragma clang loop unroll(full)
      for (size_t r = 0; r < TILE; r++)
        v[r] = i + r < m ? load_halves(x + (i + r) * x_row + s * STEP, k - s * STEP) : (sixteen_words){0};
      transpose_words(v);
#pragma clang loop unroll(full)
      for (size_t r = 0; r < TILE; r++) *(sixteen_words *)(packed + r * STEP) = v[r];
    }
}

// Copy STEP elements of each of 32 rows of w after another, from two tiles to the next two.
static void copy_rows(uint16_t *copy, const uint16_t *w, ptrdiff_t w_row, size_t rows, size_t k) {
  size_t steps = steps_of(k);
  for (size_t r = 0; r < BOTH; r++)
    for (size_t s = 0; s < steps; s++)
      *(sixteen_words *)(copy + (s * BOTH + r) * STEP) =
          r < rows ? load_halves(w + (ptrdiff_t)r * w_row + s * STEP, k - s * STEP) : (sixteen_words){0};
}

// sums: four tiles, (32 rows of w, 32 rows of x) by quarters; of `rows` of x up to sixteen, only the first two are needed
#if HAS_TILES
#define BEGIN configure_tiles(LINE)
#define END _tile_release()

static inline void multiply(float *sums, const uint16_t *w, const uint16_t *x, size_t steps, size_t rows) {
  (void)rows;
  const uint16_t *second = x + steps * TILE_BYTES / sizeof *x;
  CLEAR_TILE(0), CLEAR_TILE(1), CLEAR_TILE(2), CLEAR_TILE(3);
  for (size_t s = 0; s < steps; s++, w += BOTH * STEP, x += TILE * STEP, second += TILE * STEP) {
    _tile_loadd(4, w, LINE);
    _tile_loadd(6, x, LINE);
    _tile_loadd(7, second, LINE);
    _tile_loadd(5, w + TILE * STEP, LINE);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, LINE);
  _tile_stored(1, sums + 512, LINE); // the rows of x from 16 on
  _tile_stored(2, sums + 256, LINE);
  _tile_stored(3, sums + 768, LINE);
}
#else
#define BEGIN (void)0
#define END (void)0
enum { SUMS = 16, CHUNK = 32 }; // steps that both tiles of x stay in the cache for, while all rows of w are read

// Add the products of `count` steps, from step `first` on, to the sums of SUMS / tiles rows of w.
static inline __attribute__((always_inline)) void some_rows(float *sums, const uint16_t *w, const uint16_t *x, size_t steps,
                                                            size_t first, size_t count, int tiles) {
  sixteen_floats acc[SUMS], *at[SUMS];
#pragma clang loop unroll(full)
  for (int i = 0; i < SUMS; i++) {
    at[i] = (sixteen_floats *)(sums + i % tiles * BOTH * TILE + i / tiles * TILE);
    acc[i] = first ? *at[i] : (sixteen_floats){0};
  }
  for (size_t s = first; s < first + count; s++)
#pragma clang loop unroll_count(4)
    for (size_t p = 0; p < STEP / 2; p++) {
      sixteen_words pairs[2];
#pragma clang loop unroll(full)
      for (int t = 0; t < tiles; t++) pairs[t] = *(const sixteen_words *)(x + ((size_t)t * steps + s) * TILE * STEP + p * STEP);
#pragma clang loop unroll(full)
      for (int r = 0; r < SUMS / tiles; r++) {
        sixteen_words pair = (sixteen_words){0} + *(const one_word *)(w + s * BOTH * STEP + r * STEP + 2 * p);
#pragma clang loop unroll(full)
        for (int t = 0; t < tiles; t++) acc[r * tiles + t] = plus_products(acc[r * tiles + t], pairs[t], pair);
      }
    }
#pragma clang loop unroll(full)
  for (int i = 0; i < SUMS; i++) *at[i] = acc[i];
}

static __attribute__((noinline)) void multiply(float *sums, const uint16_t *w, const uint16_t *x, size_t steps, size_t rows) {
  for (size_t first = 0; first < steps; first += CHUNK) {
    size_t count = smaller(CHUNK, steps - first);
    for (size_t r = 0; r < BOTH && rows > TILE; r += SUMS / 2)
      some_rows(sums + r * TILE, w + r * STEP, x, steps, first, count, 2);
    for (size_t r = 0; r < BOTH && rows <= TILE; r += SUMS)
      some_rows(sums + r * TILE, w + r * STEP, x, steps, first, count, 1);
  }
}
#endif

// Write sixteen rows of y, of up to 32 columns: sums (32, 16) plus the bias.
static inline void store_rows(uint16_t *y, size_t y_row, const float *sums, const float *bias, size_t rows, size_t columns) {
  sixteen_words v[TILE];
#pragma clang loop unroll(full)
  for (size_t p = 0; p < BOTH; p += 2) {
    sixteen_floats even = *(const sixteen_floats *)(sums + p * TILE) + bias[p];
    v[p / 2] = rounded_pairs(even, *(const sixteen_floats *)(sums + (p + 1) * TILE) + bias[p + 1]);
  }
  transpose_words(v);
#pragma clang loop unroll(full)
  for (size_t r = 0; r < TILE; r++)
    if (r < rows) store_halves(y + r * y_row, v[r], columns);
}

EXPORT void tl_tiles_linear_bf16(uint16_t *y, const uint16_t *packed, const uint16_t *w, const float *bias, size_t m, size_t k,
                                 size_t n, ptrdiff_t w_row, size_t y_row, float *scratch) {
  size_t steps = steps_of(k), fit = PACKED_BYTES / (steps * LINE) / BOTH * BOTH, group = fit ? fit : BOTH;
  float sums[BOTH * BOTH] __attribute__((aligned(LINE))), own_bias[BOTH];
  uint16_t *copy = (uint16_t *)rounded_up((uintptr_t)scratch, LINE);
  BEGIN;
  for (size_t first = 0; first < m; first += group)
    for (size_t j = 0; j < n; j += BOTH) {
      size_t columns = smaller(BOTH, n - j), end = smaller(first + group, m);
      copy_rows(copy, w + (ptrdiff_t)j * w_row, w_row, columns, k);
      for (size_t c = 0; c < BOTH; c++) own_bias[c] = bias && c < columns ? bias[j + c] : 0.0f;
      for (size_t i = first; i < end; i += BOTH) {
        multiply(sums, copy, packed + i * steps * STEP, steps, end - i);
        for (size_t h = 0; h < BOTH && i + h < end; h += TILE)
          store_rows(y + (i + h) * y_row + j, y_row, sums + h * BOTH, own_bias, smaller(TILE, end - i - h), columns);
      }
    }
  END;
}

#endif
