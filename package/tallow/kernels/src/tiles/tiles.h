// Tiles of sixteen rows of 64 bytes: vectors of pairs of halves, their products by AVX512-BF16, and the matrix tiles of
// Intel's AMX, eight registers of tiles that belong to a thread.
//
// A kernel configures those and releases them again: a thread that computes nothing has none, so switching between threads
// costs nothing, and a forked process begins without. The loader asks the system to allow them (library.c) before it calls
// a kernel that has them.
#ifndef TALLOW_TILES_H
#define TALLOW_TILES_H

#include "runtime/vec.h"

#if defined __AVX512BF16__
#define HAS_DOTS 1
#include <immintrin.h>

enum { TILE = 16, TILE_BYTES = 1024, LINE = 64 };

typedef uint32_t sixteen_words __attribute__((vector_size(LINE), aligned(4), may_alias));
typedef uint32_t one_word __attribute__((may_alias)); // two halves

typedef uint16_t line_of_halves __attribute__((vector_size(LINE), aligned(2), may_alias));
typedef float sixteen_floats __attribute__((vector_size(LINE), aligned(4)));

// The first n of 32 halves; the memory of the others, which are 0, is not touched.
static inline sixteen_words load_halves(const uint16_t *p, size_t n) {
  if (n >= 32) return (sixteen_words)*(const line_of_halves *)p;
  return (sixteen_words)_mm512_maskz_loadu_epi16((uint32_t)((1ull << n) - 1), p);
}
static inline void store_halves(uint16_t *p, sixteen_words v, size_t n) {
  _mm512_mask_storeu_epi16(p, (uint32_t)((1ull << n) - 1), (__m512i)v);
}

// Pairs of bfloat16, the first of each from `even` and the second from `odd`: rounded to the nearest, ties to even.
static inline sixteen_words rounded_pairs(sixteen_floats even, sixteen_floats odd) {
  line_of_halves both = (line_of_halves)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even);
  return (sixteen_words)__builtin_shufflevector(both, both, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9,
                                                25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Transpose sixteen vectors of sixteen words in place.
static inline __attribute__((always_inline)) void transpose_words(sixteen_words *v) {
  sixteen_words a[16];
#define EACH_QUAD(A, B, C, D)                                                                                            \
  A, B, C, D, 4 + A, 4 + B, 4 + C, 4 + D, 8 + A, 8 + B, 8 + C, 8 + D, 12 + A, 12 + B, 12 + C, 12 + D
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; i += 2) { // pairs of words
    a[i] = __builtin_shufflevector(v[i], v[i + 1], EACH_QUAD(0, 16, 1, 17));
    a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], EACH_QUAD(2, 18, 3, 19));
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; i += 4) // quads: v[i + c] has word 4q + c of rows i to i + 3 in quad q
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; half++) {
      v[i + 2 * half] = __builtin_shufflevector(a[i + half], a[i + 2 + half], EACH_QUAD(0, 1, 16, 17));
      v[i + 2 * half + 1] = __builtin_shufflevector(a[i + half], a[i + 2 + half], EACH_QUAD(2, 3, 18, 19));
    }
#undef EACH_QUAD
#define LOW_QUADS 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27 // quads 0 and 2 of both
#define HIGH_QUADS 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#pragma clang loop unroll(full)
  for (int c = 0; c < 4; c++) {
    sixteen_words even[2] = {__builtin_shufflevector(v[c], v[4 + c], LOW_QUADS),
                             __builtin_shufflevector(v[8 + c], v[12 + c], LOW_QUADS)};
    sixteen_words odd[2] = {__builtin_shufflevector(v[c], v[4 + c], HIGH_QUADS),
                            __builtin_shufflevector(v[8 + c], v[12 + c], HIGH_QUADS)};
    a[c] = __builtin_shufflevector(even[0], even[1], LOW_QUADS);
    a[8 + c] = __builtin_shufflevector(even[0], even[1], HIGH_QUADS);
    a[4 + c] = __builtin_shufflevector(odd[0], odd[1], LOW_QUADS);
    a[12 + c] = __builtin_shufflevector(odd[0], odd[1], HIGH_QUADS);
  }
#undef LOW_QUADS
#undef HIGH_QUADS
#pragma clang loop unroll(full)
  for (int i = 0; i < 16; i++) v[i] = a[i];
}

// sums plus the products of sixteen pairs with one pair, or with sixteen; the second of each pair is added first
static inline sixteen_floats plus_products(sixteen_floats sums, sixteen_words pairs, sixteen_words others) {
  return (sixteen_floats)_mm512_dpbf16_ps((__m512)sums, (__m512bh)pairs, (__m512bh)others);
}

#else
#define HAS_DOTS 0
#endif

#if defined __AMX_BF16__ && defined __AMX_INT8__
#define HAS_TILES 1

// Configure four tiles of sums, 0 to 3, two of sixteen rows of `bytes`, 4 and 5, and two of as many bytes of sixteen columns,
// four bytes in a row, 6 and 7. A whole row is a LINE.
static inline void configure_tiles(int bytes) {
  struct {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } all = {.palette = 1};
  for (int t = 0; t < 8; t++) {
    all.row_bytes[t] = (uint16_t)(t == 4 || t == 5 ? bytes : LINE);
    all.rows[t] = (uint8_t)(t < 6 ? TILE : bytes / 4);
  }
  _tile_loadconfig(&all);
}

// Clear a tile of sums. Products wait 50 cycles for `_tile_zero`, and 8 for memory.
static const float zeros[TILE * TILE] __attribute__((aligned(LINE), unused));
#define CLEAR_TILE(t) _tile_loadd(t, zeros, LINE)

#else
#define HAS_TILES 0
#endif

#endif
