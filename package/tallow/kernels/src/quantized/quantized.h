// Shared by the kernels for quantised weights: rows of x rounded to int8, and products of 32 codes.
//
// A rounded row is divided into blocks of 32 elements: x ≈ scale · code, with scale = max|x| / 127 and integer codes from
// -127 to 127. For a row of k elements, a multiple of 32, it is less than 4 k bytes, at an address for float:
//   cell  codes[k]                 magnitudes with SPLIT_SIGNS
//   int8  signs[k]                 with SPLIT_SIGNS: -1 of negative codes, else 0
//   int32 corrections[3][k / 32]   with UNSIGNED_WEIGHTS: the sums that follow, negative
//                                  with SPLIT_SIGNS: Σ |code| of the negative ones, of the same elements
//   float scales[k / 32]
//   float sums[3][k / 32]          Σ codes of the first 16 elements of each block, of the last 16, and of all
//
// A target decides how weights and codes of x are stored for their product (UNSIGNED_WEIGHTS, SPLIT_SIGNS, cell):
//   AVX2, VNNI     unsigned weights, int8: one instruction multiplies four by four, without extending them. An offset of
//                  the weights is added by `corrections`
//   relaxed SIMD   signed weights; of x magnitudes, which fit into the seven bits of the second operand, and signs:
//                  Σ w · code = Σ (w ^ sign) · |code| + correction, exact also for w = -128
//   NEON's sdot    signed weights, int8
//   other targets  signed weights, int16: instructions multiply two by two, or one by one

// Rows do not depend on each other: a row of y has the same bits whatever the other rows are, and however many. So from here
// on nothing is fused but by TIMES_PLUS, and sums have one order; the compiler chooses neither.

#ifndef TALLOW_QUANTIZED_H
#define TALLOW_QUANTIZED_H

#include "runtime/kernels.h"

#pragma clang fp contract(off)

#if defined __SSE2__
#include <immintrin.h>
#elif defined __wasm_simd128__
#include <wasm_simd128.h>
#elif defined __ARM_FEATURE_DOTPROD
#include <arm_neon.h>
#endif

#if defined __AVX2__
#define INTERLEAVES 1 // whether the target multiplies interleaved blocks, see interleaved.h
enum { UNSIGNED_WEIGHTS = 1, SPLIT_SIGNS = 0 };
typedef int8_t cell;
#elif defined __wasm_relaxed_simd__
#define INTERLEAVES 0
enum { UNSIGNED_WEIGHTS = 0, SPLIT_SIGNS = 1 };
typedef int8_t cell;
#elif defined __ARM_FEATURE_DOTPROD
#define INTERLEAVES 0
enum { UNSIGNED_WEIGHTS = 0, SPLIT_SIGNS = 0 };
typedef int8_t cell;
#else
#define INTERLEAVES 0
enum { UNSIGNED_WEIGHTS = 0, SPLIT_SIGNS = 0 };
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
typedef cell half_cells __attribute__((vector_size(sizeof(cell) * BLOCK / 2), aligned(1)));
typedef int8_t eight_signs __attribute__((vector_size(WIDE), aligned(1)));
typedef cell eight_cells __attribute__((vector_size(sizeof(cell) * WIDE), aligned(1)));
typedef float floats __attribute__((vector_size(4 * WIDE), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * WIDE), aligned(4)));

typedef uint32_t words __attribute__((vector_size(4 * WIDE)));

enum { CODE_BYTES = sizeof(cell) + SPLIT_SIGNS, HAS_CORRECTIONS = UNSIGNED_WEIGHTS || SPLIT_SIGNS };

typedef struct {
  const cell *codes;
  const int8_t *signs;
  const int32_t *corrections[3];
  const float *scales, *sums[3];
} rounded;

static inline size_t corrections_of(size_t k) { return HAS_CORRECTIONS ? 3 * (k / BLOCK) : 0; }

static inline size_t rounded_bytes(size_t k) { return k * CODE_BYTES + (corrections_of(k) + k / 8) * sizeof(float); }

static inline rounded rounded_row(const unsigned char *row, size_t k) {
  const int32_t *first = (const int32_t *)(row + k * CODE_BYTES);
  const float *scales = (const float *)(first + corrections_of(k)), *sums = scales + k / BLOCK;
  size_t n = k / BLOCK;
  return (rounded){
      .codes = (const cell *)row,
      .signs = (const int8_t *)(row + k * sizeof(cell)),
      .corrections = {first, first + n, first + 2 * n},
      .scales = scales,
      .sums = {sums, sums + n, sums + 2 * n},
  };
}

static inline floats all(float s) { return (floats){s, s, s, s, s, s, s, s}; }

#if !INTERLEAVES
// Return eight IEEE 754 float16, of which `bits` has the bits, as linear_f16.c converts them.
static inline floats floats_of_halves(words bits) {
  const words shifted_bits = (words){0} + 0x8fffe000u;
  union {
    ints bits;
    floats value;
  } single = {(ints)((words)((ints)(bits << 16) >> 3) & shifted_bits)};
  ints special = ((single.bits & 0x0f800000) == 0x0f800000) & 0x7f800000;
  single.value *= all(0x1p112f);
  single.bits |= special;
  return single.value;
}
#endif

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

#if defined __AVX2__

// Products of 32 weights a with 32 codes b of x, exact: start + Σ of four elements a · b in each lane. b lies in [-127, 127].
//   dot_unsigned   a in [0, 63]; in [0, 255] with VNNI
//   dot_signed     a in [-128, 127]
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

#else

typedef int16_t eight_shorts __attribute__((vector_size(16)));
typedef int32_t four_ints __attribute__((vector_size(16)));
typedef float four_floats __attribute__((vector_size(16)));

// Σ of two elements a · b in each lane
static inline __attribute__((unused)) four_ints dot_pairs(eight_shorts a, eight_shorts b) {
#if defined __SSE2__
  return (four_ints)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined __wasm_simd128__
  return (four_ints)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b);
#else
  four_ints pairs = (four_ints)a, others = (four_ints)b; // little-endian
  return (pairs << 16 >> 16) * (others << 16 >> 16) + (pairs >> 16) * (others >> 16);
#endif
}

#if defined __wasm_relaxed_simd__
// Not inlined, to keep the code small that almost no engine runs.
static __attribute__((noinline)) four_ints dot_bytes_by_pairs(four_ints start, four_ints a, four_ints b) {
  eight_shorts first = (eight_shorts)a, second = (eight_shorts)b;
  return start + dot_pairs(first << 8 >> 8, second << 8 >> 8) + dot_pairs(first >> 8, second >> 8); // even and odd bytes
}
#endif

// Products of a register of cells, exact: start + Σ of 4 / sizeof(cell) elements a · b in each lane. With SPLIT_SIGNS b has
// magnitudes, and `relaxed` says whether the engine computes the relaxed product as the standard says.
static inline four_ints dot_cells(four_ints start, four_ints a, four_ints b, int relaxed) {
#if defined __wasm_relaxed_simd__
  if (!relaxed) return dot_bytes_by_pairs(start, a, b);
  return (four_ints)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)a, (v128_t)b, (v128_t)start);
#elif defined __ARM_FEATURE_DOTPROD
  (void)relaxed;
  return (four_ints)vdotq_s32((int32x4_t)start, (int8x16_t)a, (int8x16_t)b);
#else
  (void)relaxed;
  return start + dot_pairs((eight_shorts)a, (eight_shorts)b);
#endif
}

// Return whether the engine computes the relaxed product as the standard says. The baseline compiler of V8 11 (Chrome 114,
// Node 20) loses `start` where it is no local variable, its optimizing compiler does not. So each function that multiplies
// asks here, inlined, and its own compiler answers; constants with one use are no local variables.
static inline __attribute__((always_inline)) int relaxed_is_exact(void) {
#if defined __wasm_relaxed_simd__
  v128_t sum = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(wasm_i8x16_const_splat(-77), wasm_i8x16_const_splat(113),
                                                      wasm_i32x4_const_splat(1009));
  return wasm_i32x4_extract_lane(sum, 0) == 1009 - 4 * 77 * 113;
#else
  return 1;
#endif
}

// Products of 16 weights in [-128, 127] with 16 codes of x, without the correction; exact where `relaxed_is_exact`.
static inline four_ints dot_half(four_ints start, half_codes a, rounded x, size_t half) {
  typedef int8_t half_signed __attribute__((vector_size(BLOCK / 2), aligned(1)));
  typedef union {
    half_cells all;
    four_ints part[sizeof(cell)];
  } registers;
  half_signed weights = (half_signed)a;
  if (SPLIT_SIGNS) weights ^= *(const half_signed *)(x.signs + BLOCK / 2 * half);
  registers first = {__builtin_convertvector(weights, half_cells)};
  registers second = {*(const half_cells *)(x.codes + BLOCK / 2 * half)};
  for (size_t i = 0; i < sizeof(cell); i++) start = dot_cells(start, first.part[i], second.part[i], 1);
  return start;
}

static inline int32_t correction_of(rounded x, int sums, size_t block) {
  return SPLIT_SIGNS ? x.corrections[sums][block] : 0;
}

#endif

// Shift the bits of each byte down, or up if `by` is negative. The other bits come from the adjacent byte: the caller masks
// them.
static inline codes shifted(codes v, int by) { return (codes)(by < 0 ? (words)v << (uint32_t)-by : (words)v >> (uint32_t)by); }

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
