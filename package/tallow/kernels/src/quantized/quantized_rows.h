// Products of rounded rows of x with rows of w as they lie in the file, for targets without AVX2: included by
// quantized_linear.h, which has the contract and says what a format defines.
#include "quantized/quantized_panel.h"

// The blocks that are multiplied at a time: those of a unit, or as many as a register has totals.
enum { RUN = UNIT == BLOCK ? 4 : UNIT_BLOCKS, RUN_BYTES = RUN / UNIT_BLOCKS * UNIT_BYTES };

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

static inline ints loaded_ints(const int32_t *p, size_t n) {
  if (n == WIDE) return *(const ints *)p;
  ints v = {0};
  for (size_t i = 0; i < n; i++) v[i] = p[i];
  return v;
}

// Σ of the elements of each of four vectors, in its lane. Written as what every target has an instruction for.
static inline four_ints totals_of(const four_ints *v) {
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
  four_ints first = LOW(v[0], v[1]) + HIGH(v[0], v[1]), second = LOW(v[2], v[3]) + HIGH(v[2], v[3]);
  return __builtin_shufflevector(first, second, 0, 1, 4, 5) + __builtin_shufflevector(first, second, 2, 3, 6, 7);
#undef LOW
#undef HIGH
}

// Add the products of `blocks` blocks with those of a row of x to `y`: in the order and with the roundings of
// quantized_panel.c, so that a row alone has the bits that it has among others.
static inline __attribute__((always_inline)) float add_run(float y, const unsigned char *w, rounded x, size_t first,
                                                           size_t blocks) {
  run_scales s = scales_of(w, blocks);
  floats of_x = loaded(x.scales + first, blocks), scaled[HALVES];
  union {
    four_ints four[WIDE / 4];
    ints all;
  } exact[HALVES] = {0};
#pragma clang loop unroll(full)
  for (size_t from = 0; from < RUN; from += 4) {
    four_ints products[HALVES][4] = {0};
#pragma clang loop unroll(full)
    for (size_t b = from; b < smaller(from + 4, blocks); b++) {
      union {
        codes all;
        half_codes half[2];
      } q = {codes_of(w + b / UNIT_BLOCKS * UNIT_BYTES, b % UNIT_BLOCKS) - OFFSET};
      for (size_t h = 0; h < 2; h++) {
        four_ints *sum = products[h % HALVES] + b % 4;
        *sum = dot_half(*sum, q.half[h], x, 2 * (first + b) + h);
      }
    }
    for (int h = 0; h < HALVES; h++) exact[h].four[from / 4] = totals_of(products[h]);
  }
  for (int h = 0; h < HALVES; h++) {
    int sums = HALVES == 1 ? 2 : h;
    if (SPLIT_SIGNS) exact[h].all += loaded_ints(x.corrections[sums] + first, blocks);
    scaled[h] = __builtin_convertvector(exact[h].all, floats) * s.scales[h];
    if (HAS_MINIMA) scaled[h] = TIMES_PLUS(-loaded(x.sums[sums] + first, blocks), s.minima[h], scaled[h]);
  }
#pragma clang loop unroll(full)
  for (size_t b = 0; b < blocks; b++)
    for (int h = 0; h < HALVES; h++) y = TIMES_PLUS(scaled[h][b], of_x[b], y);
  return y;
}

// Return whether the engine multiplies as this needs it; y is computed only then.
static __attribute__((noinline)) int one_row(float *y, rounded x, const unsigned char *w, const float *bias, size_t units,
                                             size_t n) {
  if (!relaxed_is_exact()) return 0;
  size_t blocks = units * UNIT_BLOCKS;
  for (size_t j = 0; j < n; j++) {
    float sum = bias ? bias[j] : 0.0f;
    size_t b = 0;
    for (; b + RUN <= blocks; b += RUN, w += RUN_BYTES) sum = add_run(sum, w, x, b, RUN);
    if (UNIT == BLOCK)
      for (; b < blocks; b++, w += UNIT_BYTES) sum = add_run(sum, w, x, b, 1);
    y[j] = sum;
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
