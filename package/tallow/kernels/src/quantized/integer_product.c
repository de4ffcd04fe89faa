// Products of matrices of eight-bit integers, and convolutions, exact:
//
//   tl_integer_product       s = start + x @ w      (m, k) @ (k, n) -> (m, n), int32; y is s, or float: s · factor + shift, or
//                            uint8: clamp(round(s · factor + shift), low, high) + zero, ties to even
//   tl_integer_convolution   the same for rows x of the windows of images, which are gathered for some points at once
//   tl_integer_depthwise     the same with a group per channel, and one output of each
//   tl_integer_rows          bytes of scratch for the product; tl_integer_windows, tl_integer_places: for the convolutions
//   tl_integer_pack          w for the first two, in tl_integer_packed(k, n) bytes
//   tl_quantize_u8           codes = clamp(round(x / scale) + zero, 0, 255), ties to even; NaN gives any code
//   tl_integers_in_word      how many elements of x are multiplied together: of uint8, or of int16 on targets without such an
//                            instruction, where some rows of x are widened at a time
//   layout  x (m, k) uint8; w (k, n) int16 for tl_integer_pack, which writes (panels of PAIR columns, words, PAIR, TOGETHER), zeros
//           where w has none; with int8 where x has uint8, and each element in [-128, 127]; start (n,) int32 or null; factor,
//           shift (n,) or null: without a factor y is int32. A zero point of x is part of `start`
//   codes   {zero, low, high} or null: with codes y is uint8
//   images  shape as in convolution.h, of one group; x (samples, height, width, channels), w (kernel_h · kernel_w · channels,
//           outputs), y (samples, out_h, out_w, outputs); `outside` is what each byte of x is outside of it
//   depthwise  shape of `groups` ≥ LANES channels; w (kernel_h · kernel_w, groups) int32, of which only the bits of an element
//           are set
//   range   rows of y, of samples · out_h for images, from `first` to `last`: calls for different ranges may run concurrently
//   align   none needed      alias  nothing overlaps
//   error   none while |s| < 2^31; as float that of two roundings
#include "convolution/places.h"

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

// Write what follows the sums of one vector of columns, from column `from` on, for some points.
static inline __attribute__((always_inline)) void write(const panel *p, size_t first, size_t count, size_t from, size_t left,
                                                        const vi *sums, size_t step) {
  const vf factor = p->factor ? load_up_to(p->factor + from, left) : splat(0.0f);
  const vf shift = p->factor && p->shift ? load_up_to(p->shift + from, left) : splat(0.0f);
  const vf low = splat(p->codes ? p->codes[1] : 0.0f), high = splat(p->codes ? p->codes[2] : 0.0f);
  for (size_t i = first; i < first + count; i++, sums += step) {
    vf y = (vf)*sums;
    if (p->factor) {
      y = __builtin_convertvector(*sums, vf) * factor;
      if (p->shift) y += shift;
    }
    if (p->codes)
      store_codes((uint8_t *)p->y + i * p->n + from, left, clamp(y, low, high), p->codes[0]);
    else
      store_up_to((float *)p->y + i * p->n + from, left, y);
  }
}

static __attribute__((noinline)) void finish(const panel *p, size_t first, size_t count, const vi *sums) {
  for (size_t from = 0; from < p->width; from += LANES, sums++) {
    const size_t left = p->width - from;
    if (left >= LANES)
      write(p, first, count, from, LANES, sums, 2);
    else
      write(p, first, count, from, left, sums, 2);
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

// Rows of so many words that are multiplied by all of w before the next ones.
static size_t rows_of(size_t words) {
  const size_t fit = BLOCK / (4 * words + 1) / ROWS * ROWS;
  return fit > ROWS ? fit : ROWS;
}

static void product(char *y, const char *x, const panel *all, size_t rows) {
  const size_t words = all->words, n = all->n, block = rows_of(words);
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

static size_t words_of(size_t k) { return (k + TOGETHER - 1) / TOGETHER; }

// Whether rows of k bytes are multiplied as they are.
static int is_ready(size_t k) { return sizeof(element) == 1 && k % TOGETHER == 0; }

typedef uint8_t chunk __attribute__((vector_size(CHUNK), aligned(1)));
typedef element elements __attribute__((vector_size(CHUNK * sizeof(element)), aligned(1)));

// Copy some bytes to elements; up to CHUNK after them are written too, and no byte from `end` on is read.
static inline void copy(element *to, const uint8_t *from, size_t count, const uint8_t *end) {
  for (; count && (size_t)(end - from) >= CHUNK; from += CHUNK, to += CHUNK, count -= smaller(count, CHUNK))
    *(elements *)to = __builtin_convertvector(*(const chunk *)from, elements);
  for (size_t i = 0; i < count; i++) to[i] = (element)from[i];
}

EXPORT size_t tl_integer_rows(size_t k) {
  return is_ready(k) ? 0 : (rows_of(words_of(k)) * words_of(k) * TOGETHER + CHUNK) * sizeof(element);
}

// The product of some rows of k bytes.
static void product_of_bytes(char *y, const uint8_t *x, const panel *all, size_t rows, size_t k, element *scratch) {
  if (is_ready(k)) {
    product(y, (const char *)x, all, rows);
    return;
  }
  const size_t block = rows_of(all->words), row = all->words * TOGETHER, item = all->codes ? 1 : sizeof(float);
  const uint8_t *end = x + rows * k;
  for (size_t top = 0, count; top < rows; top += count) {
    count = smaller(block, rows - top);
    if (row == k)
      copy(scratch, x + top * k, count * k, end);
    else
      for (size_t i = 0; i < count; i++) copy(scratch + i * row, x + (top + i) * k, k, end);
    product(y + top * all->n * item, (const char *)scratch, all, count);
  }
}

EXPORT void tl_integer_product(void *y, const uint8_t *x, const void *w, const int32_t *start, const float *factor,
                               const float *shift, const float *codes, size_t first, size_t last, size_t k, size_t n,
                               void *scratch) {
  const panel p = {.w = w, .start = start, .factor = factor, .shift = shift, .codes = codes, .words = words_of(k), .n = n};
  product_of_bytes((char *)y + first * n * (codes ? 1 : sizeof(float)), x + first * k, &p, last - first, k, scratch);
}

static size_t taps_of(const sizes *n) { return n->kernel_h * n->kernel_w; }

// Elements from one row of gathered windows to the next.
static size_t row_of(const sizes *n) { return words_of(taps_of(n) * n->channels) * TOGETHER; }

static size_t points_of(const sizes *n) { return rows_of(row_of(n) / TOGETHER); }

EXPORT size_t tl_integer_windows(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  return (points_of(n) * row_of(n) + CHUNK) * sizeof(element);
}

// Write the window of a point, an index of y without its outputs, to `row`.
static __attribute__((noinline)) void gather(element *row, const uint8_t *x, const sizes *n, size_t point, int outside) {
  const size_t pixel = n->channels, i = point / n->out_w, left = point % n->out_w * n->stride_w - n->before_w;
  const uint8_t *end = x + n->samples * n->height * n->width * pixel;
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
        for (size_t c = 0; c < pixel; c++) row[c] = (element)outside;
    }
  }
}

EXPORT void tl_integer_convolution(void *y, const uint8_t *x, const void *w, const int32_t *start, const float *factor,
                                   const float *shift, const float *codes, size_t first, size_t last, const size_t *shape,
                                   size_t outside, void *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t row = row_of(n), item = codes ? 1 : sizeof(float), end = last * n->out_w;
  element *windows = scratch;
  const panel p = {.w = w, .start = start, .factor = factor, .shift = shift, .codes = codes, .words = row / TOGETHER, .n = n->outputs};
  if (taps_of(n) == 1 && n->stride_h == 1 && n->stride_w == 1 && n->out_h == n->height && n->out_w == n->width) {
    const size_t point = first * n->out_w; // points of y are those of x
    product_of_bytes((char *)y + point * n->outputs * item, x + point * n->channels, &p, end - point, n->channels, windows);
    return;
  }
  for (size_t point = first * n->out_w, count; point < end; point += count) {
    count = smaller(points_of(n), end - point);
    for (size_t i = 0; i < count; i++) gather(windows + i * row, x, n, point + i, (int)outside);
    product((char *)y + point * n->outputs * item, (const char *)windows, &p, count);
  }
}

enum {
  SOME = 4,    // points of a tile of depthwise convolutions: their weights are read once
  POINTS = 64, // of one table of places, a multiple of SOME
};

EXPORT size_t tl_integer_places(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  return (POINTS * taps_of(n) + 1) * sizeof(char *) + n->groups;
}

static inline vi load_bytes(const uint8_t *p) { return __builtin_convertvector(*(const bytes *)p, vi); }

// Sums of some points for a vector of channels.
static inline __attribute__((always_inline)) void along(const panel *p, const char *const *places, const int32_t *w, size_t taps,
                                                        size_t first, size_t channel, int points) {
  vi acc[SOME];
#pragma clang loop unroll(full)
  for (int i = 0; i < points; i++) acc[i] = load_ints(p->start + channel);
  const char *const *place = places + first;
  for (size_t t = 0; t < taps; t++, place += POINTS) {
    const vi weight = load_ints(w + t * p->n + channel);
#pragma clang loop unroll(full)
    for (int i = 0; i < points; i++) acc[i] = dot(acc[i], load_bytes((const uint8_t *)place[i] + channel), weight);
  }
  write(p, first, (size_t)points, channel, LANES, acc, 1);
}

EXPORT void tl_integer_depthwise(void *y, const uint8_t *x, const int32_t *w, const int32_t *start, const float *factor,
                                 const float *shift, const float *codes, size_t first, size_t last, const size_t *shape,
                                 size_t outside, void *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t taps = taps_of(n), channels = n->groups, item = codes ? 1 : sizeof(float), end = last * n->out_w;
  const char **places = (const char **)rounded_up((uintptr_t)scratch, sizeof(char *));
  char *row = (char *)(places + POINTS * taps);
  for (size_t c = 0; c < channels; c++) row[c] = (char)outside;
  panel p = {.start = start, .factor = factor, .shift = shift, .codes = codes, .n = channels};
  for (size_t point = first * n->out_w, count; point < end; point += count) {
    count = smaller(POINTS, end - point);
    fill_places(places, POINTS, (const char *)x, row, channels, n, point, count);
    p.y = (char *)y + point * channels * item;
    for (size_t i = 0, many; i < count; i += many) {
      many = count - i >= SOME ? SOME : 1;
      for (size_t c = 0; c < channels; c += LANES) {
        const size_t from = smaller(c, channels - LANES); // the last vector overlaps another
        if (many == SOME)
          along(&p, places, w, taps, i, from, SOME);
        else
          along(&p, places, w, taps, i, from, 1);
      }
    }
  }
}

EXPORT void tl_quantize_u8(uint8_t *codes, const float *x, size_t count, float zero, float scale) {
  const vf least = splat(-zero), most = splat(255.0f - zero);
  for (size_t i = 0; i < count; i += LANES) {
    const size_t left = smaller(LANES, count - i);
    store_codes(codes + i, left, clamp(load_up_to(x + i, left) / splat(scale), least, most), zero);
  }
}
