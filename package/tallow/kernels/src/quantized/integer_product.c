// Products of matrices of eight-bit integers, exact:
//
//   tl_integer_product       s = start + x @ w      (m, k) @ (k, n) -> (m, n), int32; y is s, or float: s · factor + shift
//   tl_integer_pack          w for it, in tl_integer_packed(k, n) bytes
//   tl_quantize_u8           codes = clamp(round(x / scale) + zero, 0, 255), ties to even; NaN gives any code
//   tl_integers_in_word      how many elements of x are multiplied together: of uint8, or of int16 on targets without such an
//                            instruction
//   layout  x (m, words · TOGETHER), rows padded with anything; w (k, n) int16 for tl_integer_pack, which writes
//           (panels of PAIR columns, words, PAIR, TOGETHER), zeros where w has none; with int8 where x has uint8, and each
//           element in [-128, 127]; start (n,) int32 or null; factor, shift (n,) or null: without a factor y is int32
//   range   rows of y from `first` to `last`: calls for different ranges may run concurrently
//   align   none needed      alias  nothing overlaps
//   error   none while |s| < 2^31; as float that of two roundings
#include "runtime/vec.h"

#if defined __AVX512VNNI__ || defined __AVX2__ || defined __SSE2__
#include <immintrin.h>
#elif defined __wasm_simd128__
#include <wasm_simd128.h>
#endif

#if defined __AVX512VNNI__
enum { TOGETHER = 4 };
typedef int8_t element;
#else
enum { TOGETHER = 2 };
typedef int16_t element;
#endif

enum {
#if defined __AVX512F__
  ROWS = 12, // as in channels_last_f32.c
#elif defined __wasm__
  ROWS = 4,
#else
  ROWS = 6,
#endif
  PAIR = 2 * LANES,
  BLOCK = 1 << 17, // bytes of x that are multiplied by all of w before the next ones
};

typedef int32_t vi_unaligned __attribute__((vector_size(4 * LANES), aligned(1)));
typedef int32_t word __attribute__((aligned(1), may_alias));

static inline vi load_ints(const void *p) { return *(const vi_unaligned *)p; }

// sums + Σ of the products of TOGETHER elements in each lane
static inline vi dot(vi sums, vi x, vi w) {
#if defined __AVX512VNNI__
  return (vi)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)x, (__m512i)w);
#elif defined __AVX2__
  return sums + (vi)_mm256_madd_epi16((__m256i)x, (__m256i)w);
#elif defined __SSE2__
  return sums + (vi)_mm_madd_epi16((__m128i)x, (__m128i)w);
#elif defined __wasm_simd128__
  return sums + (vi)wasm_i32x4_dot_i16x8((v128_t)x, (v128_t)w);
#else
  return sums + (x << 16 >> 16) * (w << 16 >> 16) + (x >> 16) * (w >> 16); // little-endian
#endif
}

EXPORT size_t tl_integers_in_word(void) { return TOGETHER; }

EXPORT size_t tl_integer_packed(size_t k, size_t n) { // bytes of the packed w
  return (n + PAIR - 1) / PAIR * ((k + TOGETHER - 1) / TOGETHER) * PAIR * TOGETHER * sizeof(element);
}

EXPORT __attribute__((minsize)) void tl_integer_pack(void *packed, const int16_t *w, size_t k, size_t n) {
  element *to = packed;
  for (size_t first = 0; first < n; first += PAIR)
    for (size_t p = 0; p < k; p += TOGETHER)
      for (size_t j = first; j < first + PAIR; j++)
        for (size_t i = p; i < p + TOGETHER; i++) *to++ = i < k && j < n ? (element)w[i * n + j] : 0;
}

typedef struct {
  char *y;
  const char *x, *w;
  const int32_t *start;
  const float *factor, *shift;
  size_t words, n, width; // of x; columns of y, and those of the panel
} panel;

static __attribute__((noinline)) void finish(const panel *p, size_t first, size_t count, const vi *sums) {
  for (size_t i = first; i < first + count; i++)
    for (size_t from = 0; from < PAIR; from += LANES) {
      const vi s = *sums++;
      if (from >= p->width) continue;
      const size_t left = p->width - from;
      vf y = (vf)s;
      if (p->factor) {
        y = __builtin_convertvector(s, vf) * load_up_to(p->factor + from, left);
        if (p->shift) y += load_up_to(p->shift + from, left);
      }
      store_up_to((float *)p->y + i * p->n + from, left, y);
    }
}

static inline __attribute__((always_inline)) void tile(const panel *p, size_t first, size_t count, int rows) {
  vi acc[ROWS][2];
#pragma clang loop unroll(full)
  for (int v = 0; v < 2; v++) {
    const size_t from = (size_t)v * LANES;
    const vi start = p->start && from < p->width ? (vi)load_up_to((const float *)p->start + from, p->width - from) : (vi){0};
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) acc[i][v] = start;
  }
  const char *x[ROWS], *w = p->w;
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) x[i] = p->x + (first + ((size_t)i < count ? (size_t)i : 0)) * p->words * 4;
#pragma clang loop unroll(disable)
  for (size_t c = 0; c < 4 * p->words; c += 4, w += PAIR * 4)
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) {
      const vi each = *(const word *)(x[i] + c) - (vi){0};
#pragma clang loop unroll(full)
      for (int v = 0; v < 2; v++) acc[i][v] = dot(acc[i][v], each, load_ints(w + v * LANES * 4));
    }
  vi sums[ROWS * 2];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) sums[2 * i] = acc[i][0], sums[2 * i + 1] = acc[i][1];
  finish(p, first, count, sums);
}

static __attribute__((noinline)) void all_rows(const panel *p, size_t first, size_t count) { tile(p, first, count, ROWS); }
static __attribute__((noinline)) void half_rows(const panel *p, size_t first, size_t count) { tile(p, first, count, ROWS / 2); }
static __attribute__((noinline)) void one_row(const panel *p, size_t first) { tile(p, first, 1, 1); }

EXPORT void tl_integer_product(void *y, const void *x, const void *w, const int32_t *start, const float *factor,
                               const float *shift, size_t first, size_t last, size_t words, size_t n) {
  const size_t fit = BLOCK / (4 * words + 1) / ROWS * ROWS, block = fit > ROWS ? fit : ROWS;
  for (size_t top = first, count; top < last; top += count) {
    count = smaller(block, last - top);
    for (size_t j = 0; j < n; j += PAIR) {
      panel p = {.y = (char *)((float *)y + top * n + j), .x = (const char *)x + top * words * 4, .words = words, .n = n};
      p.w = (const char *)w + j * words * 4, p.width = smaller(PAIR, n - j), p.start = start ? start + j : 0;
      p.factor = factor ? factor + j : 0, p.shift = shift ? shift + j : 0;
      for (size_t i = 0, left; i < count; i += left) {
        left = smaller(count - i, ROWS);
        if (left == 1)
          one_row(&p, i);
        else if (left <= ROWS / 2)
          half_rows(&p, i, left);
        else
          all_rows(&p, i, left);
      }
    }
  }
}

EXPORT void tl_quantize_u8(uint8_t *codes, const float *x, size_t count, float zero, float scale) {
  typedef uint8_t bytes __attribute__((vector_size(LANES), aligned(1)));
  const vf least = splat(-zero), most = splat(255.0f - zero);
  const vi offset = (int32_t)zero - 0x4b400000 - (vi){0}; // of a float plus ROUNDING
  for (size_t i = 0; i < count; i += LANES) {
    const size_t left = smaller(LANES, count - i);
    const vf code = clamp(load_up_to(x + i, left) / splat(scale), least, most) + splat(ROUNDING);
    const bytes made = __builtin_convertvector((vi)code + offset, bytes);
    if (left == LANES)
      *(bytes *)(codes + i) = made;
    else
      for (size_t j = 0; j < left; j++) codes[i + j] = made[j];
  }
}
