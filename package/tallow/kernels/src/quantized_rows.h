// Products of rounded rows of x with rows of w as they lie in the file, for targets without AVX2: included by
// quantized_linear.h, which has the contract and says what a format defines.
#include "quantized_panel.h"

enum { CHAINS = 2 };

// Of block b in element b; the first half of the blocks and the second, if they have scales of their own.
typedef struct {
  floats scales[2], minima[2];
} unit_scales;

static inline unit_scales scales_of(const unsigned char *w);
// Return the codes of the weights [32 block, 32 block + 32) of a block of the format.
static inline codes codes_of(const unsigned char *w, size_t block);

static inline ints dot_block(codes q, rounded x, size_t block) {
  return dot_signed((ints){0}, (signed_codes)(q - OFFSET), x_codes(x, block));
}

// Add the products of a unit with that unit of a row of x, in any lane of any chain.
static inline __attribute__((always_inline)) void add_unit(floats acc[CHAINS], const unsigned char *w, rounded x,
                                                           size_t unit, size_t chain) {
  unit_scales s = scales_of(w);
  size_t first = unit * UNIT_BLOCKS;
  floats scale[HALVES];
  if (UNIT == BLOCK) {
    float a = s.scales[0][0] * x.scales[first];
    scale[0] = all(a);
    if (HAS_MINIMA) acc[chain] -= (floats){s.minima[0][0] * (x.scales[first] * x.sums[2][first])};
  } else {
    floats of_x = *(const floats *)(x.scales + first);
    for (int h = 0; h < HALVES; h++) {
      scale[h] = s.scales[h] * of_x;
      if (HAS_MINIMA) acc[h] -= s.minima[h] * (of_x * *(const floats *)(x.sums[HALVES == 1 ? 2 : h] + first));
    }
  }
#pragma clang loop unroll(full)
  for (size_t b = 0; b < UNIT_BLOCKS; b++) {
    float low = scale[0][b], high = scale[HALVES - 1][b];
    floats by = HALVES == 1 ? all(low) : (floats){low, low, low, low, high, high, high, high};
    size_t c = (chain + b) % CHAINS;
    acc[c] = times_plus(as_floats(dot_block(codes_of(w, b), x, first + b)), by, acc[c]);
  }
}

static __attribute__((noinline)) void one_row(float *y, rounded x, const unsigned char *w, const float *bias, size_t units,
                                              size_t n) {
  enum { UNROLL = UNIT == BLOCK ? CHAINS : 1 };
  for (size_t j = 0; j < n; j++, w += units * UNIT_BYTES) {
    floats acc[CHAINS] = {0};
    size_t u = 0;
    for (; u + UNROLL <= units; u += UNROLL)
#pragma clang loop unroll(full)
      for (size_t c = 0; c < UNROLL; c++) add_unit(acc, w + (u + c) * UNIT_BYTES, x, u + c, c);
    if (UNROLL > 1)
      for (; u < units; u++) add_unit(acc, w + u * UNIT_BYTES, x, u, 0);
    y[j] = sum_of(acc[0] + acc[1]) + (bias ? bias[j] : 0.0f);
  }
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
    unit_scales s = scales_of(w[r]);
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
  if (m == 1)
    one_row(y, rounded_row(x, k), w, bias, k / UNIT, n);
  else
    many_rows(y, x, w, bias, m, k, n, y_row);
}
