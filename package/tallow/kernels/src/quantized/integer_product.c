// Products of matrices of eight-bit integers, and convolutions, exact:
//
//   tl_integer_product       s = start + x @ w      (m, k) @ (k, n) -> (m, n), int32; y is s, or float: s · factor + shift, or
//                            uint8: clamp(round(s · factor + shift), low, high) + zero, ties to even
//   tl_integer_convolution   the same for rows x of the windows of images, which are gathered for some points at once
//   tl_integer_windows       bytes of scratch for it
//   tl_integer_pack          w for it, in tl_integer_packed(k, n) bytes
//   tl_quantize_u8           codes = clamp(round(x / scale) + zero, 0, 255), ties to even; NaN gives any code
//   tl_integers_in_word      how many elements of x are multiplied together: of uint8, or of int16 on targets without such an
//                            instruction
//   layout  x (m, words · TOGETHER), rows padded with anything; w (k, n) int16 for tl_integer_pack, which writes
//           (panels of PAIR columns, words, PAIR, TOGETHER), zeros where w has none; with int8 where x has uint8, and each
//           element in [-128, 127]; start (n,) int32 or null; factor, shift (n,) or null: without a factor y is int32
//   codes   {zero, low, high} or null: with codes y is uint8
//   images  shape as in convolution.h, of one group; x (samples, height, width, channels), w (kernel_h · kernel_w · channels,
//           outputs), y (samples, out_h, out_w, outputs); `outside` is what each byte of x is outside of it
//   range   rows of y, of samples · out_h for images, from `first` to `last`: calls for different ranges may run concurrently
//   align   none needed      alias  nothing overlaps
//   error   none while |s| < 2^31; as float that of two roundings
#include "convolution/convolution.h"
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
  CHUNK = 16,      // bytes that are gathered at once
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
  const float *factor, *shift, *codes;
  size_t words, n, width; // of x; columns of y, and those of the panel
} panel;

typedef uint8_t bytes __attribute__((vector_size(LANES), aligned(1)));

// Some lanes, rounded and with an offset; a float plus ROUNDING has the integer in its low bits.
static inline void store_codes(uint8_t *to, size_t left, vf y, float zero) {
  const bytes made = __builtin_convertvector((vi)(y + splat(ROUNDING)) + ((int32_t)zero - 0x4b400000), bytes);
  if (left >= LANES)
    *(bytes *)to = made;
  else
    for (size_t j = 0; j < left; j++) to[j] = made[j];
}

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
      if (p->codes)
        store_codes((uint8_t *)p->y + i * p->n + from, left, clamp(y, splat(p->codes[1]), splat(p->codes[2])), p->codes[0]);
      else
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

static void product(char *y, const char *x, const panel *all, size_t rows) {
  const size_t words = all->words, n = all->n, fit = BLOCK / (4 * words + 1) / ROWS * ROWS, block = fit > ROWS ? fit : ROWS;
  const size_t item = all->codes ? 1 : sizeof(float);
  for (size_t top = 0, count; top < rows; top += count) {
    count = smaller(block, rows - top);
    for (size_t j = 0; j < n; j += PAIR) {
      panel p = *all;
      p.y = y + (top * n + j) * item, p.x = x + top * words * 4, p.w += j * words * 4, p.width = smaller(PAIR, n - j);
      p.start = p.start ? p.start + j : 0, p.factor = p.factor ? p.factor + j : 0, p.shift = p.shift ? p.shift + j : 0;
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

EXPORT void tl_integer_product(void *y, const void *x, const void *w, const int32_t *start, const float *factor,
                               const float *shift, const float *codes, size_t first, size_t last, size_t words, size_t n) {
  const panel p = {.w = w, .start = start, .factor = factor, .shift = shift, .codes = codes, .words = words, .n = n};
  const size_t item = codes ? 1 : sizeof(float);
  product((char *)y + first * n * item, (const char *)x + first * words * 4, &p, last - first);
}

// Bytes from one row of gathered windows to the next.
static size_t row_of(const sizes *n) { return rounded_up(n->kernel_h * n->kernel_w * n->channels, TOGETHER) * sizeof(element); }

static size_t points_of(const sizes *n) {
  const size_t fit = BLOCK / row_of(n) / ROWS * ROWS;
  return fit > ROWS ? fit : ROWS;
}

EXPORT size_t tl_integer_windows(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  return points_of(n) * row_of(n) + CHUNK;
}

// Copy some bytes; up to CHUNK after them are written too, and none from `end` on is read.
static inline void copy(char *to, const char *from, size_t count, const char *end) {
  typedef char chunk __attribute__((vector_size(CHUNK), aligned(1)));
  for (; count && (size_t)(end - from) >= CHUNK; from += CHUNK, to += CHUNK, count -= smaller(count, CHUNK))
    *(chunk *)to = *(const chunk *)from;
  for (size_t i = 0; i < count; i++) to[i] = from[i];
}

// Write the window of a point, an index of y without its outputs, to `row`.
static __attribute__((noinline)) void gather(char *row, const char *x, const sizes *n, size_t point, int outside) {
  const size_t pixel = n->channels * sizeof(element), i = point / n->out_w, left = point % n->out_w * n->stride_w - n->before_w;
  const char *end = x + n->samples * n->height * n->width * pixel;
  for (size_t v = 0; v < n->kernel_h; v++) {
    const size_t h = i % n->out_h * n->stride_h + v * n->dilation_h - n->before_h; // wraps around above x
    const size_t from = (i / n->out_h * n->height + h) * n->width * pixel; // of x, if it is in it
    const int is_inside = h < n->height && left < n->width && left + n->kernel_w <= n->width && n->dilation_w == 1;
    const size_t together = is_inside ? n->kernel_w : 1; // pixels that are adjacent
    for (size_t u = 0; u < n->kernel_w; u += together, row += together * pixel) {
      const size_t w = left + u * n->dilation_w;
      if (h < n->height && w < n->width)
        copy(row, x + (from + w * pixel), together * pixel, end);
      else
        for (size_t c = 0; c < pixel; c++) row[c] = (char)outside;
    }
  }
}

EXPORT void tl_integer_convolution(void *y, const void *x, const void *w, const int32_t *start, const float *factor,
                                   const float *shift, const float *codes, size_t first, size_t last, const size_t *shape,
                                   size_t outside, char *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t row = row_of(n), item = codes ? 1 : sizeof(float), end = last * n->out_w;
  const panel p = {.w = w, .start = start, .factor = factor, .shift = shift, .codes = codes, .words = row / 4, .n = n->outputs};
  const int is_plain = n->kernel_h * n->kernel_w == 1 && n->stride_h == 1 && n->stride_w == 1 && n->out_h == n->height &&
                       n->out_w == n->width && row == n->channels * sizeof(element); // points of y are those of x
  for (size_t point = first * n->out_w, count; point < end; point += count) {
    count = is_plain ? end - point : smaller(points_of(n), end - point);
    for (size_t i = 0; i < count && !is_plain; i++) gather(scratch + i * row, x, n, point + i, (int)outside);
    product((char *)y + point * n->outputs * item, is_plain ? (const char *)x + point * row : scratch, &p, count);
  }
}

EXPORT void tl_quantize_u8(uint8_t *codes, const float *x, size_t count, float zero, float scale) {
  const vf least = splat(-zero), most = splat(255.0f - zero);
  for (size_t i = 0; i < count; i += LANES) {
    const size_t left = smaller(LANES, count - i);
    store_codes(codes + i, left, clamp(load_up_to(x + i, left) / splat(scale), least, most), zero);
  }
}
