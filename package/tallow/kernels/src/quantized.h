// Shared by the kernels for quantised weights: rows of x rounded to int8, and products of 32 codes.
//
// A rounded row is divided into blocks of 32 elements: x ≈ scale · code, with scale = max|x| / 127 and integer codes from
// -127 to 127. For a row of k elements, a multiple of 32, it is less than 4 k bytes, at an address for float:
//   cell  codes[k]
//   int32 minus[3][k / 32]   if weights are unsigned: the sums that follow, negative
//   float scales[k / 32]
//   float sums[3][k / 32]    Σ codes of the first 16 elements of each block, of the last 16, and of all
//
// A target decides how weights and codes of x are stored for their product (UNSIGNED_WEIGHTS, cell):
//   AVX2, VNNI     unsigned weights, int8: one instruction multiplies four by four, without extending them. An offset of
//                  the weights is added by `minus`
//   NEON's sdot    signed weights, int8
//   other targets  signed weights, int16: instructions multiply two by two, or one by one
//
// Products have eight lanes on every target, in two registers where those have four.

#ifndef TALLOW_QUANTIZED_H
#define TALLOW_QUANTIZED_H

#include "kernels.h"

#if defined __SSE2__
#include <immintrin.h>
#elif defined __wasm_simd128__
#include <wasm_simd128.h>
#elif defined __ARM_FEATURE_DOTPROD
#include <arm_neon.h>
#endif

#if defined __AVX2__
#define INTERLEAVES 1 // whether the target multiplies interleaved blocks, see interleaved.h
enum { UNSIGNED_WEIGHTS = 1 };
typedef int8_t cell;
#elif defined __ARM_FEATURE_DOTPROD
#define INTERLEAVES 0
enum { UNSIGNED_WEIGHTS = 0 };
typedef int8_t cell;
#else
#define INTERLEAVES 0
enum { UNSIGNED_WEIGHTS = 0 };
typedef int16_t cell;
#endif

#if defined __AVXVNNI__ || (defined __AVX512VNNI__ && defined __AVX512VL__)
#define HAS_DPBUSD 1
#else
#define HAS_DPBUSD 0
#endif

enum { BLOCK = 32, WIDE = 8, SUPER = 256 };

typedef uint8_t codes __attribute__((vector_size(BLOCK), aligned(1))); // of weights
typedef int8_t signed_codes __attribute__((vector_size(BLOCK), aligned(1)));
typedef cell cells __attribute__((vector_size(sizeof(cell) * BLOCK), aligned(1))); // of x, or of weights
typedef uint8_t half_codes __attribute__((vector_size(BLOCK / 2), aligned(1)));
typedef uint8_t eight_codes __attribute__((vector_size(WIDE), aligned(1)));
typedef cell eight_cells __attribute__((vector_size(sizeof(cell) * WIDE), aligned(1)));
typedef float floats __attribute__((vector_size(4 * WIDE), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * WIDE), aligned(4)));

typedef uint32_t words __attribute__((vector_size(4 * WIDE)));

typedef struct {
  const cell *codes;
  const int32_t *minus[3];
  const float *scales, *sums[3];
} rounded;

static inline size_t minus_of(size_t k) { return UNSIGNED_WEIGHTS ? 3 * (k / BLOCK) : 0; }

static inline size_t rounded_bytes(size_t k) { return k * sizeof(cell) + (minus_of(k) + k / 8) * sizeof(float); }

static inline rounded rounded_row(const unsigned char *row, size_t k) {
  const int32_t *minus = (const int32_t *)(row + k * sizeof(cell));
  const float *scales = (const float *)(minus + minus_of(k)), *sums = scales + k / BLOCK;
  size_t n = k / BLOCK;
  return (rounded){(const cell *)row, {minus, minus + n, minus + 2 * n}, scales, {sums, sums + n, sums + 2 * n}};
}

static inline floats all(float s) { return (floats){s, s, s, s, s, s, s, s}; }
static inline floats times_plus(floats a, floats b, floats c) { return a * b + c; }
static inline floats as_floats(ints v) { return __builtin_convertvector(v, floats); }
static inline float sum_of(floats v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }
static inline cells x_codes(rounded x, size_t block) { return *(const cells *)(x.codes + BLOCK * block); }

// An IEEE 754 float16 at any address, little-endian. The bits are converted as in linear_f16.c.
static inline float half_at(const unsigned char *p) {
  uint16_t bits = (uint16_t)(p[0] | p[1] << 8);
#if defined __F16C__
  union {
    uint16_t bits;
    _Float16 value;
  } half = {bits};
  return (float)half.value;
#else
  union {
    uint32_t bits;
    float value;
  } single = {(uint32_t)(int16_t)bits << 13 & 0x8fffe000u};
  uint32_t special = (single.bits & 0x0f800000u) == 0x0f800000u ? 0x7f800000u : 0;
  single.value *= 0x1p112f;
  single.bits |= special;
  return single.value;
#endif
}

static inline uint32_t word_at(const unsigned char *p) { // little-endian
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// Products of 32 weights a with 32 codes b of x, exact: start + Σ of four elements a · b in each lane, those of a and b in
// [0, 15] in lanes 0 to 3, the others in lanes 4 to 7. b lies in [-127, 127].
//   dot_unsigned   a in [0, 63]; in [0, 255] with VNNI      if UNSIGNED_WEIGHTS
//   dot_signed     a in [-128, 127]
#if defined __AVX2__

static inline ints dot_unsigned(ints start, codes a, signed_codes b) {
#if defined __AVX512VNNI__ && defined __AVX512VL__
  return (ints)_mm256_dpbusd_epi32((__m256i)start, (__m256i)a, (__m256i)b);
#elif defined __AVXVNNI__
  return (ints)_mm256_dpbusd_avx_epi32((__m256i)start, (__m256i)a, (__m256i)b);
#else
  __m256i pairs = _mm256_maddubs_epi16((__m256i)a, (__m256i)b);
  return start + (ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}
static inline ints dot_signed(ints start, signed_codes a, signed_codes b) { // |a| is unsigned; its sign goes to b
  return dot_unsigned(start, (codes)_mm256_abs_epi8((__m256i)a), (signed_codes)_mm256_sign_epi8((__m256i)b, (__m256i)a));
}

#elif defined __ARM_FEATURE_DOTPROD

static inline ints dot_signed(ints start, signed_codes a, signed_codes b) {
  union {
    signed_codes all;
    int8x16_t half[2];
  } first = {a}, second = {b};
  union {
    ints all;
    int32x4_t half[2];
  } sum = {start};
  for (int h = 0; h < 2; h++) sum.half[h] = vdotq_s32(sum.half[h], first.half[h], second.half[h]);
  return sum.all;
}

#else

typedef int16_t eight_shorts __attribute__((vector_size(2 * WIDE)));
typedef int32_t four_ints __attribute__((vector_size(2 * WIDE)));

// Σ of two elements a · b in each lane
static inline four_ints dot_pairs(eight_shorts a, eight_shorts b) {
#if defined __SSE2__
  return (four_ints)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined __wasm_simd128__
  return (four_ints)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b);
#else
  four_ints pairs = (four_ints)a, others = (four_ints)b; // little-endian
  return (pairs << 16 >> 16) * (others << 16 >> 16) + (pairs >> 16) * (others >> 16);
#endif
}
static inline ints dot_signed(ints start, signed_codes a, cells b) {
  typedef int16_t all_shorts __attribute__((vector_size(2 * BLOCK), aligned(1)));
  union {
    all_shorts all;
    eight_shorts part[4];
  } first = {__builtin_convertvector(a, all_shorts)}, second = {b};
  union {
    ints all;
    four_ints half[2];
  } sum = {start};
  // The relaxed product of int8 is not used. Without AVX-VNNI an engine computes it in as many instructions: in Chromium
  // 156 it is no faster. And V8 11 (Node 20) takes the first operand for the unsigned one, later versions the second.
  for (int i = 0; i < 4; i++) sum.half[i / 2] += dot_pairs(first.part[i], second.part[i]);
  return sum.all;
}

#endif

#if !defined __AVX2__
static inline ints dot_unsigned(ints start, codes a, cells b) { return dot_signed(start, (signed_codes)a, b); }
#endif

// Shift the bits of each byte down. The bits above come from the next byte: the caller masks them.
static inline codes shifted(codes v, size_t by) { return (codes)((words)v >> (uint32_t)by); }

// The low nibbles of 16 bytes, then the high ones.
static inline codes nibbles(const unsigned char *p) {
  half_codes bytes = *(const half_codes *)p, high = bytes >> 4;
  return __builtin_shufflevector(bytes, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31) &
         15;
}

// 1 where the bit is set, else 0: 32 bits of four bytes
static inline codes bits_at(const unsigned char *p) {
  const codes bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                     1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint32_t word = word_at(p);
  codes bytes = (codes)(words){word, word, word, word, word, word, word, word};
  bytes = __builtin_shufflevector(bytes, bytes, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 18, 18, 18, 18, 18, 18, 18,
                                  18, 19, 19, 19, 19, 19, 19, 19, 19); // byte i / 8 of the word
  return (codes)((bytes & bit) != 0) & 1;
}

#endif
