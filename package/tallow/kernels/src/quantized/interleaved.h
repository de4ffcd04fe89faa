// Blocks of sixteen rows of a matrix, interleaved, so that each lane of a vector belongs to a row of w: a column of y.
//
//   rows as they lie in a file            interleaved: the same bytes in another order
//   row 0   │d│w0│w1│ ... │d│w0│w1│ ...   │d d d ... d│w0 w0 w0 ... w0│w1 w1 ... w1│ ... │d d d ... d│ ...
//   row 1   │d│w0│w1│ ... │d│w0│w1│ ...     16 halves     16 words                        the next blocks
//   ...
//
// A block of any format of GGUF is a number of 32-bit words, with or without one float16 before or after them (`half_place`).
// Each word of sixteen blocks is a vector. Four adjacent codes of every column are one load, shift and mask away, and are
// multiplied by four codes of x that are broadcast from memory; no sums across a vector. The last rows of a matrix, fewer
// than sixteen, stay as they are.

#ifndef TALLOW_INTERLEAVED_H
#define TALLOW_INTERLEAVED_H

#include "quantized/quantized.h"

enum { NO_HALF, HALF_BEFORE, HALF_AFTER }; // float16 of a block that is outside of its words

#if INTERLEAVES

typedef uint32_t column_words __attribute__((vector_size(4 * COLUMNS), aligned(2)));
typedef int32_t column_ints __attribute__((vector_size(4 * COLUMNS), aligned(4)));
typedef float column_floats __attribute__((vector_size(4 * COLUMNS), aligned(4)));
typedef uint16_t column_halves __attribute__((vector_size(2 * COLUMNS), aligned(2)));
typedef int32_t unaligned_int __attribute__((aligned(1), may_alias));

#include "quantized/column_floats.h"

static inline column_floats floats_of(column_halves v) {
#if defined __AVX512F__
  return (column_floats)_mm512_cvtph_ps((__m256i)v);
#else
  union {
    column_halves all;
    __m128i part[2];
  } halves = {v};
  union {
    column_floats all;
    __m256 part[2];
  } result;
  for (int i = 0; i < 2; i++) result.part[i] = _mm256_cvtph_ps(halves.part[i]);
  return result.all;
#endif
}

// Σ of four products in each lane added to `start`; w as in `dot_unsigned`, or signed.
static inline column_ints dot_columns(column_ints start, column_words w, int32_t x, int is_signed) {
#if defined __AVX512VNNI__ && defined __AVX512VL__
  (void)is_signed;
  return (column_ints)_mm512_dpbusd_epi32((__m512i)start, (__m512i)w, _mm512_set1_epi32(x));
#else
  union {
    column_ints all;
    ints part[2];
  } sum = {start};
  union {
    column_words all;
    codes part[2];
  } weights = {w};
  signed_codes every = (signed_codes)(ints){x, x, x, x, x, x, x, x};
#pragma clang loop unroll(full)
  for (int i = 0; i < 2; i++)
    sum.part[i] = is_signed ? dot_signed(sum.part[i], (signed_codes)weights.part[i], every)
                            : dot_unsigned(sum.part[i], weights.part[i], every);
  return sum.all;
#endif
}

static inline column_floats halves_at(const unsigned char *p) { return floats_of(*(const column_halves *)p); }
static inline column_floats low_halves(column_words v) { return floats_of(__builtin_convertvector(v, column_halves)); }
static inline column_floats high_halves(column_words v) { return low_halves(v >> 16); }
static inline column_floats floats_of_bytes(column_words v, size_t byte) { // unsigned
  return __builtin_convertvector((column_ints)(v >> (uint32_t)(8 * byte) & 255), column_floats);
}

// The codes [4 group, 4 group + 4) of 32 in 16 bytes: the first 16 in the low nibbles, the others in the high ones.
static inline column_words column_nibbles(const column_words *w, size_t group) {
  return w[group % 4] >> (uint32_t)(group / 4 * 4) & 0x0f0f0f0f;
}

// The bits [4 group, 4 group + 4) of each word, one in each byte.
static inline column_words column_bits(column_words w, size_t group) {
  return (w >> (uint32_t)(4 * group) & 15) * 0x00204081 & 0x01010101;
}

// Interleave `units` blocks of `columns` ≤ COLUMNS rows; columns that are lacking are copies of the last one.
void interleave_units(unsigned char *out, const unsigned char *rows, size_t row_bytes, size_t units, size_t unit_bytes,
                      int half_place, size_t columns);

#endif

#endif
