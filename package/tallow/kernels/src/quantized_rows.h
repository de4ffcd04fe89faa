// Products of rounded rows of x with rows of w as they lie in the file, for targets without AVX2: included by
// quantized_linear.h, which has the contract and says what a format defines.
#include "quantized_panel.h"

enum { CHAINS = 2, RUN = 8, RUN_BYTES = RUN / UNIT_BLOCKS * UNIT_BYTES };

// Scales of up to RUN adjacent blocks, of block b in element b: of the first half of each block and of the second, if they
// have scales of their own.
typedef struct {
  floats scales[2], minima[2];
} run_scales;

// Return the scales of `blocks` blocks: UNIT_BLOCKS or more.
static inline run_scales scales_of(const unsigned char *w, size_t blocks);
// Return the codes of the weights [32 block, 32 block + 32) of a block of the format.
static inline codes codes_of(const unsigned char *w, size_t block);

static inline floats loaded(const float *p, size_t n) {
  if (n == WIDE) return *(const floats *)p;
  floats v = {0};
  for (size_t i = 0; i < n; i++) v[i] = p[i];
  return v;
}

// A subscript instead of shuffles would make the compiler compute and extract the elements one by one.
static inline four_floats every(floats v, size_t element) {
#define EVERY(i)                                                                                                         \
  case i:                                                                                                                \
    return __builtin_shufflevector(v, v, i, i, i, i);
  switch (element) {
    EVERY(0) EVERY(1) EVERY(2) EVERY(3) EVERY(4) EVERY(5) EVERY(6)
  default:
    EVERY(7)
  }
#undef EVERY
}

static inline four_floats times_plus(four_ints a, four_floats b, four_floats c) {
  return __builtin_convertvector(a, four_floats) * b + c;
}

static inline four_floats folded(floats v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}

// Add the products of `blocks` blocks with those of a row of x, in any lane of any chain.
static inline __attribute__((always_inline)) void add_run(four_floats acc[CHAINS], const unsigned char *w, rounded x,
                                                          size_t first, size_t blocks) {
  run_scales s = scales_of(w, blocks);
  floats of_x = loaded(x.scales + first, blocks), scale[HALVES];
  for (int h = 0; h < HALVES; h++) {
    scale[h] = s.scales[h] * of_x;
    if (HAS_MINIMA) acc[h] -= folded(s.minima[h] * (of_x * loaded(x.sums[HALVES == 1 ? 2 : h] + first, blocks)));
  }
#pragma clang loop unroll(full)
  for (size_t b = 0; b < blocks; b++) {
    union {
      codes all;
      half_codes half[2];
    } q = {codes_of(w + b / UNIT_BLOCKS * UNIT_BYTES, b % UNIT_BLOCKS) - OFFSET};
    four_ints sum[HALVES];
    for (int h = 0; h < HALVES; h++) sum[h] = (four_ints){correction_of(x, HALVES == 1 ? 2 : h, first + b)};
    for (int h = 0; h < 2; h++)
      sum[h % HALVES] = dot_half(sum[h % HALVES], q.half[h], x, 2 * (first + b) + (size_t)h);
    for (int h = 0; h < HALVES; h++) {
      size_t c = ((size_t)h + b * (HALVES == 1)) % CHAINS;
      acc[c] = times_plus(sum[h], every(scale[h], b), acc[c]);
    }
  }
}

// Return whether the engine multiplies as this needs it; y is computed only then.
static __attribute__((noinline)) int one_row(float *y, rounded x, const unsigned char *w, const float *bias, size_t units,
                                             size_t n) {
  if (!relaxed_is_exact()) return 0;
  size_t blocks = units * UNIT_BLOCKS;
  for (size_t j = 0; j < n; j++) {
    four_floats acc[CHAINS] = {0};
    size_t b = 0;
    for (; b + RUN <= blocks; b += RUN, w += RUN_BYTES) add_run(acc, w, x, b, RUN);
    if (UNIT == BLOCK)
      for (; b < blocks; b++, w += UNIT_BYTES) add_run(acc, w, x, b, 1);
    four_floats sum = acc[0] + acc[1];
    y[j] = ((sum[0] + sum[2]) + (sum[1] + sum[3])) + (bias ? bias[j] : 0.0f);
  }
  return 1;
}

static inline cells stored(codes q) {
  return __builtin_convertvector((signed_codes)(q - OFFSET), cells);
}

// Store what eight rows have in each of their blocks: element b of row r becomes element r of out[b].
static inline void interleave(float (*out)[PANEL_COLUMNS], const floats *rows) {
  if (UNIT == BLOCK) {
    for (size_t r = 0; r < WIDE; r++) out[0][r] = rows[r][0];
    return;
  }
  ints v[WIDE];
  for (size_t r = 0; r < WIDE; r++) v[r] = (ints)rows[r];
  transpose_8x8(v);
  for (size_t b = 0; b < WIDE; b++) *(ints *)out[b] = v[b];
}

static inline void unpack_unit(panel *p, const unsigned char *const *w, size_t first) {
  floats scales[2][WIDE], minima[2][WIDE];
#pragma clang loop unroll(disable)
  for (size_t r = 0; r < WIDE; r++) {
    run_scales s = scales_of(w[r], UNIT_BLOCKS);
    for (size_t h = 0; h < HALVES; h++) scales[h][r] = s.scales[h], minima[h][r] = s.minima[h];
  }
  for (size_t h = 0; h < HALVES; h++) {
    interleave(p->scales[h] + first, scales[h]);
    if (HAS_MINIMA) interleave(p->minima[h] + first, minima[h]);
  }
#pragma clang loop unroll(disable)
  for (size_t b = 0; b < UNIT_BLOCKS; b++) {
    union {
      cells row;
      ints part[GROUPS / WIDE];
    } unpacked[WIDE];
    for (size_t r = 0; r < WIDE; r++) unpacked[r].row = stored(codes_of(w[r], b));
    for (size_t g = 0; g < GROUPS; g += WIDE) {
      ints groups[WIDE];
      for (size_t r = 0; r < WIDE; r++) groups[r] = unpacked[r].part[g / WIDE];
      transpose_8x8(groups);
      for (size_t r = 0; r < WIDE; r++) p->codes[first + b][g + r] = groups[r];
    }
  }
}

// Columns that the panel lacks are copies of the last one.
static __attribute__((noinline)) void unpack(panel *p, const unsigned char *w, size_t row_bytes, size_t units,
                                             size_t columns) {
  for (size_t u = 0; u < units; u++) {
    const unsigned char *row[WIDE];
    for (size_t r = 0; r < WIDE; r++) row[r] = w + smaller(r, columns - 1) * row_bytes + u * UNIT_BYTES;
    unpack_unit(p, row, u * UNIT_BLOCKS);
  }
}

static inline void many_rows(float *y, const unsigned char *x, const unsigned char *w, const float *bias, size_t m,
                             size_t k, size_t n, size_t y_row) {
  panel_times *times = HAS_MINIMA    ? HALVES == 1 ? tl_panel_minima : tl_panel_minima_halves
                       : HALVES == 2 ? tl_panel_plain_halves
                                     : tl_panel_plain;
  size_t row_bytes = k / UNIT * UNIT_BYTES;
  panel p;
  for (size_t j = 0; j < n; j += PANEL_COLUMNS) {
    panel_place place = {.columns = smaller(PANEL_COLUMNS, n - j), .bias = bias ? bias + j : 0};
    do { // also once for k = 0
      place.blocks = smaller(BLOCKS, k / BLOCK - place.first);
      unpack(&p, w + j * row_bytes + place.first / UNIT_BLOCKS * UNIT_BYTES, row_bytes, place.blocks / UNIT_BLOCKS,
             place.columns);
      times(y + j, y_row, x, m, k, &p, place);
    } while ((place.first += BLOCKS) < k / BLOCK);
  }
}

// With more than one row of x, some weights are unpacked once for all of them.
static inline void quantized_linear(float *y, const unsigned char *x, const unsigned char *w, const float *bias, size_t m,
                                    size_t k, size_t n, size_t y_row) {
  if (m == 1 && one_row(y, rounded_row(x, k), w, bias, k / UNIT, n)) return;
  many_rows(y, x, w, bias, m, k, n, y_row);
}
