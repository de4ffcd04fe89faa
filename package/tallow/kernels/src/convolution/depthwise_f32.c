// tl_depthwise_f32     as tl_convolution_f32 with a group per channel: y[n, c, o, i] = bias[c, o] + Σ w[c, o, k] x[n, c, ...]
// tl_depthwise_dx_f32  the gradient of x from g, the gradient of y
// tl_depthwise_dw_f32  the gradient of w
//
//   shape   as in convolution_f32.c, with 1 channel per group
//   range   channels of samples, or for dw channels, from `first` to `last`: calls for different ranges write to
//           different memory, and may run concurrently
//   layout  all contiguous      align  none needed      alias  outputs overlap nothing
//   scratch tl_depthwise_scratch(shape) floats, contents irrelevant
//   special NaN and infinities may spread over the whole channel of a sample
//   error   ≤ (K / 4 + 8) ulp of the sum of the magnitudes of the K products
//
// A channel of x is first copied with zero padding (planes.h); with AVX-512, which loads parts of a vector, the usual
// convolutions read x in place.
#include "convolution/planes.h"
#include "product/transpose.h"

static size_t taps_of(const sizes *n) { return n->kernel_h * n->kernel_w; }

// For the gradient of x: g with zeros around it, where elements of x that are a stride apart have products with adjacent elements of g;
// and a copy of x with columns sorted by remainder.
typedef struct {
  size_t above, before; // rows and columns of zeros
  size_t rows, row;     // of g with zeros, for each output of a channel
  size_t column_row;    // of the copy of x: the columns of a remainder, whole vectors
} padded_gradient;

static padded_gradient padded_gradient_of(const sizes *n) {
  padded_gradient m = {(n->kernel_h - 1) * n->dilation_h / n->stride_h, (n->kernel_w - 1) * n->dilation_w / n->stride_w, 0, 0, 0};
  m.column_row = to_lanes((n->before_w + n->width - 1) / n->stride_w + 1);
  m.rows = m.above + (n->before_h + n->height - 1) / n->stride_h + 1, m.row = m.before + m.column_row;
  return m;
}

// The floats that begin at an address of `count` offsets.
static size_t floats_of(size_t count) { return (count + 1) * (sizeof(size_t) / sizeof(float)); }

static size_t *aligned(float *scratch) {
  return (size_t *)(((uintptr_t)scratch + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t));
}

// Return the offset in the copy of each position of the first window.
static size_t *place_taps(float *scratch, const sizes *n, const plane *p) {
  size_t *at = aligned(scratch);
  for (size_t h = 0; h < n->kernel_h; h++)
    for (size_t w = 0; w < n->kernel_w; w++) at[h * n->kernel_w + w] = place_of(n, p, h, w);
  return at;
}

static void copy_gradient(float *copy, const float *g, const sizes *n, const plane *p) {
  for (size_t i = 0; i < n->out_h; i++, copy += p->width, g += n->out_w) {
    copy_row(copy, g, n->out_w);
    clear(copy + n->out_w, p->width - n->out_w);
  }
}

// Σ over positions of w · x, for a vector of each of `rows` rows of y
static inline __attribute__((always_inline)) void convolve(float *y, size_t y_row, const float *x, size_t x_row, const size_t *at,
                                                       const float *w, size_t taps, float bias, int rows) {
  vf acc[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) acc[i] = splat(bias);
  for (size_t t = 0; t < taps; t++)
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) acc[i] = fma(splat(w[t]), load(x + at[t] + (size_t)i * x_row), acc[i]);
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store(y + (size_t)i * y_row, acc[i]);
}

// Return the next row of `all` to compute, after `i` of them: the last ones may be computed twice, eight or four at a time.
static size_t next_row(size_t i, size_t all) {
  const size_t some = i + 4 < all ? 8 : 4;
  return i < all && i + some > all && all >= some ? all - some : i;
}

// The same for up to `rows` rows; return how many.
static __attribute__((noinline)) size_t convolve_rows(size_t rows, float *y, size_t y_row, const float *x, size_t x_row,
                                                  const size_t *at, const float *w, size_t taps, float bias) {
  if (rows >= 8) {
    convolve(y, y_row, x, x_row, at, w, taps, bias, 8);
    return 8;
  }
  if (rows >= 4) {
    convolve(y, y_row, x, x_row, at, w, taps, bias, 4);
    return 4;
  }
  convolve(y, y_row, x, x_row, at, w, taps, bias, 1);
  return 1;
}

#if defined __AVX512F__
// Of sixteen elements from `first` on, those that are inside of a row.
static uint16_t inside_row(ptrdiff_t first, size_t width) {
  const ptrdiff_t end = (ptrdiff_t)width - first;
  return part_of(end > 0 ? (size_t)end : 0, 0) & (uint16_t)~part_of(first < 0 ? (size_t)-first : 0, 0);
}

// Windows of a vector of y, which read x in place, 0 outside of it. If rows of y have at most half as many elements as a
// vector, its halves are of two images. Elements of x are read in two parts for such a pair, or with a stride of two.
typedef struct {
  const float **rows, *zeros; // of x, which the windows read
  struct column {
    ptrdiff_t at;       // of the first element, in a row: in memory, because the compiler would keep a pointer for each row
    uint16_t low, high; // lanes inside of the row, in both parts
  } *columns;           // of the kernel, for each vector of a row of y
  ptrdiff_t part, half;   // from the first part to the second; from lane 0 of the first image of y to that of the second
  uint16_t first, second; // lanes of each image of y
  int is_pair;
  size_t kernel_w;
} view;

// Return the rows that windows read, for a multiple of eight rows of y.
static size_t rows_read(const sizes *n) { return (rounded_up(n->out_h, 8) - 1) * n->stride_h + n->kernel_h; }

// Return for how many kernels gradients are computed together: their images are adjacent, and their sums stay in L1.
static size_t together(const sizes *n) { return 2 * (taps_of(n) < 128 ? 128 / taps_of(n) : 1); }

static size_t view_scratch(const sizes *n) {
  const size_t columns = to_lanes(n->out_w) / LANES * n->kernel_w * (sizeof(struct column) / sizeof(float));
  return floats_of(rows_read(n)) + columns + (n->height + 1) * n->width + together(n) * taps_of(n) * LANES;
}

static int is_pair(const sizes *n) { return n->outputs == 1 && n->out_w <= LANES / 2; }

// Return the view, and what is left of the memory.
static view view_of(float *scratch, const sizes *n, float **rest) {
  view v = {.rows = (const float **)aligned(scratch), .part = LANES, .kernel_w = n->kernel_w};
  v.is_pair = is_pair(n);
  v.columns = (struct column *)(v.rows + rows_read(n));
  struct column *column = v.columns;
  for (size_t j = 0; j < n->out_w; j += LANES)
    for (size_t c = 0; c < n->kernel_w; c++) {
      const ptrdiff_t at = (ptrdiff_t)(j * n->stride_w + c * n->dilation_w) - (ptrdiff_t)n->before_w;
      const uint16_t low = inside_row(at, n->width), half = low & 0xff;
      *column++ = !v.is_pair         ? (struct column){at, low, inside_row(at + LANES, n->width)}
                  : n->stride_w == 1 ? (struct column){at, half, (uint16_t)(half << 8)}
                                     : (struct column){at, low, low};
    }
  float *zeros = (float *)column;
  *rest = zeros + (n->height + 1) * n->width;
  clear(zeros, (size_t)(*rest - zeros));
  v.zeros = zeros;
  return v;
}

// Let a view be of one image, or of a pair; of a single image left, the pair is that one twice.
static void set_image(view *v, const float *image, size_t images, size_t rows, const sizes *n) {
  const float *row = image - n->before_h * n->width;
  for (size_t r = 0; r < rows; r++, row += n->width) v->rows[r] = r - n->before_h < n->height ? row : v->zeros;
  if (!v->is_pair) return;
  v->part = (ptrdiff_t)((images - 1) * n->height * n->width) - (n->stride_w == 1 ? LANES / 2 : 0);
  v->half = (ptrdiff_t)((images - 1) * n->out_h * n->out_w) - LANES / 2;
}

// Let a view be of the vector of a row of y at column j; return the columns of the kernel.
static const struct column *columns_of_vector(view *v, size_t j, const sizes *n) {
  v->first = part_of(n->out_w - j, 0), v->second = v->is_pair ? (uint16_t)(v->first << 8) : 0;
  return v->columns + j / LANES * n->kernel_w;
}

// What the windows of a vector read from a row, at one column of the kernel.
static inline __attribute__((always_inline)) vf load_windows(const float *row, struct column column, ptrdiff_t part, int step,
                                                     int halves) {
  const float *from = row + column.at;
  const vf low = __builtin_ia32_loadups512_mask(from, splat(0.0f), column.low);
  if (step == 1 && !halves) return low;
  const vf both = __builtin_ia32_loadups512_mask(from + part, step == 1 ? low : splat(0.0f), column.high);
  if (step == 1) return both;
  return __builtin_shufflevector(low, both, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

// One number for each half.
static inline __attribute__((always_inline)) vf in_halves(const float *of_first, const float *of_second, int halves) {
  const vi second = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
  return halves ? select(second, splat(*of_second), splat(*of_first)) : splat(*of_first);
}

typedef struct {
  const float *w, *bias;
} filter;

// A vector of each of `rows` rows of y, for kernels of `taps_h` rows and a stride of `step`. A row of x is read once for each
// column of the kernel, for all rows of y whose windows have it.
static inline __attribute__((always_inline)) void convolve_view(float *y, size_t y_row, const view *x, const float *const *x_rows,
                                                        const struct column *columns, const filter *of, int taps_h, int step,
                                                        int halves, int rows) {
  vf acc[8], weight[7];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) acc[i] = in_halves(of[0].bias, of[1].bias, halves);
  for (size_t c = 0; c < x->kernel_w; c++) {
#pragma clang loop unroll(full)
    for (int h = 0; h < taps_h; h++) {
      const size_t at = (size_t)h * x->kernel_w + c;
      weight[h] = in_halves(of[0].w + at, of[1].w + at, halves);
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < step * (rows - 1) + taps_h; r++) {
      const vf v = load_windows(x_rows[r], columns[c], x->part, step, halves);
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++)
        if (r >= i * step && r < i * step + taps_h) acc[i] = fma(weight[r - i * step], v, acc[i]);
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++, y += y_row) {
    __builtin_ia32_storeups512_mask(y, acc[i], x->first);
    if (halves) __builtin_ia32_storeups512_mask(y + x->half, acc[i], x->second);
  }
}

// sums, a vector for each position of the kernel, += g · x for a vector of each of `rows` ≤ 8 rows of g
static inline __attribute__((always_inline)) void correlate_rows(float *sums, const float *g, size_t g_row, size_t rows,
                                                                 const view *x, const float *const *x_rows,
                                                                 const struct column *columns, int taps_h, int step,
                                                                 int halves) {
  const size_t sums_row = x->kernel_w * LANES;
  vf of_g[8], acc[7];
#pragma clang loop unroll(full)
  for (size_t i = 0; i < 8; i++) {
    const float *from = g + smaller(i, rows - 1) * g_row;
    of_g[i] = __builtin_ia32_loadups512_mask(from, splat(0.0f), i < rows ? x->first : 0);
    if (halves) of_g[i] = __builtin_ia32_loadups512_mask(from + x->half, of_g[i], i < rows ? x->second : 0);
  }
  for (size_t c = 0; c < x->kernel_w; c++, sums += LANES) {
#pragma clang loop unroll(full)
    for (int h = 0; h < taps_h; h++) acc[h] = load(sums + (size_t)h * sums_row);
#pragma clang loop unroll(full)
    for (int r = 0; r < step * 7 + taps_h; r++) {
      const vf v = load_windows(x_rows[r], columns[c], x->part, step, halves);
#pragma clang loop unroll(full)
      for (int h = 0; h < taps_h; h++)
        if (r >= h && r - h <= 7 * step && (r - h) % step == 0) acc[h] = fma(of_g[(r - h) / step], v, acc[h]);
    }
#pragma clang loop unroll(full)
    for (int h = 0; h < taps_h; h++) store(sums + (size_t)h * sums_row, acc[h]);
  }
}

typedef void convolver(float *y, size_t y_row, const view *x, const float *const *x_rows, const struct column *columns,
                    const filter *of);
typedef void correlator(float *sums, const float *g, size_t g_row, size_t rows, const view *x, const float *const *x_rows,
                        const struct column *columns);
typedef struct {
  convolver *some, *seven; // some rows: four of a pair of images, otherwise eight
  correlator *dw;
} in_place;

#define CONVOLVE(NAME, taps_h, step, halves, rows)                                                                          \
  static __attribute__((noinline)) void convolve_##NAME##_##rows(float *y, size_t y_row, const view *x,                     \
                                                              const float *const *x_rows, const struct column *columns,     \
                                                              const filter *of) {                                        \
    convolve_view(y, y_row, x, x_rows, columns, of, taps_h, step, halves, rows);                                                    \
  }
#define IN_PLACE(NAME, taps_h, step, halves, some)                                                                       \
  CONVOLVE(NAME, taps_h, step, halves, some) CONVOLVE(NAME, taps_h, step, halves, 7)                                           \
  static __attribute__((noinline)) void correlate_##NAME(float *sums, const float *g, size_t g_row, size_t rows,         \
                                                         const view *x, const float *const *x_rows,                         \
                                                         const struct column *columns) {                                 \
    correlate_rows(sums, g, g_row, rows, x, x_rows, columns, taps_h, step, halves);                                         \
  }                                                                                                                      \
  static const in_place NAME = {convolve_##NAME##_##some, convolve_##NAME##_7, correlate_##NAME};
#define IN_PLACE_OR_HALVES(NAME, taps_h, step)                                                                           \
  IN_PLACE(NAME, taps_h, step, 0, 8) IN_PLACE(NAME##_in_halves, taps_h, step, 1, 4)
IN_PLACE_OR_HALVES(three, 3, 1) IN_PLACE_OR_HALVES(three_by_2, 3, 2)
IN_PLACE_OR_HALVES(five, 5, 1) IN_PLACE_OR_HALVES(five_by_2, 5, 2)
IN_PLACE_OR_HALVES(seven, 7, 1)

// Return the functions for these sizes, or null.
static const in_place *in_place_of(const sizes *n) {
#define CASE(NAME, taps_h, step)                                                                                         \
  if (n->kernel_h == taps_h && n->stride_h == step) return is_pair(n) ? &NAME##_in_halves : &NAME;
  if (n->dilation_h > 1 || n->stride_w != n->stride_h || n->out_h < (is_pair(n) ? 4 : 7)) return 0;
  CASE(three, 3, 1) CASE(three_by_2, 3, 2) CASE(five, 5, 1) CASE(five_by_2, 5, 2) CASE(seven, 7, 1)
  return 0;
}

// Prefetch a part of the next image, of as many rows as there are of y, while eight rows from `i` on are computed: the
// processor does not foresee what windows read in place.
static void fetch_part(const float *image, size_t row, size_t i) { fetch(image + i * row, 8 * row); }

static filter filter_of(const float *w, const float *bias, size_t kernel, const sizes *n) {
  static const float none = 0.0f;
  return (filter){w + kernel * taps_of(n), bias ? bias + kernel : &none};
}

// tl_depthwise_f32 with such functions. The last rows of an image may be computed twice.
static void convolve_in_place(const in_place *made, float *y, const float *x, const float *w, const float *bias, size_t first,
                       size_t last, const sizes *n, float *scratch) {
  const size_t in = n->height * n->width, out = n->out_h * n->out_w, in_row = in / n->out_h;
  const size_t rows_of_image = (n->out_h - 1) * n->stride_h + n->kernel_h;
  float *rest;
  view v = view_of(scratch, n, &rest);
  const int by_seven = n->out_h % 8 && n->out_h % 7 == 0;
  const size_t rows = by_seven ? 7 : v.is_pair ? 4 : 8;
  convolver *some = by_seven ? made->seven : made->some;
  for (size_t one = first, images; one < last; one += images) {
    images = v.is_pair ? smaller(2, last - one) : 1;
    set_image(&v, x + one * in, images, rows_of_image, n);
    const float *next = x + (one + images) * in;
    for (size_t o = 0; o < n->outputs; o++) {
      float *to = y + (one * n->outputs + o) * out;
      const size_t kernel = one % n->groups * n->outputs + o, other = (one + images - 1) % n->groups * n->outputs + o;
      const filter of[2] = {filter_of(w, bias, kernel, n), filter_of(w, bias, other, n)};
      for (size_t i = 0; i < n->out_h;) {
        const size_t top = smaller(i, n->out_h - rows);
        fetch_part(next, images * in_row, i);
        fetch_part(to + images * out, images * n->out_w, i);
        for (size_t j = 0; j < n->out_w; j += LANES) {
          const struct column *columns = columns_of_vector(&v, j, n);
          some(to + top * n->out_w + j, n->out_w, &v, v.rows + top * n->stride_h, columns, of);
        }
        i = top + rows;
      }
    }
  }
}

// Store the sums of `count` vectors, or of their halves.
static void store_sums(float *to, float *of_second_half, const float *sums, size_t count) {
  for (size_t t = 0; t < count; t += 4) {
    const size_t last = count - 1;
    const vf quads = sums_in_quads(load(sums + t * LANES), load(sums + smaller(t + 1, last) * LANES),
                                   load(sums + smaller(t + 2, last) * LANES), load(sums + smaller(t + 3, last) * LANES));
#define QUAD(i) __builtin_shufflevector(quads, quads, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3)
    quad low = QUAD(0) + QUAD(1), high = QUAD(2) + QUAD(3);
#undef QUAD
    if (!of_second_half) low += high;
    for (size_t i = 0; i < smaller(4, count - t); i++) {
      to[t + i] = ((const float *)&low)[i];
      if (of_second_half) of_second_half[t + i] = ((const float *)&high)[i];
    }
  }
}

// tl_depthwise_dw_f32 with such functions.
static void correlate_in_place(const in_place *made, float *dw, const float *x, const float *g, size_t first, size_t last,
                           const sizes *n, float *scratch) {
  const size_t in = n->height * n->width, out = n->out_h * n->out_w, taps = taps_of(n);
  const size_t kernels = n->groups * n->outputs, end = last * n->outputs, in_row = in / n->out_h;
  float *sums;
  view v = view_of(scratch, n, &sums);
  const size_t at_once = v.is_pair ? 2 : 1;
  for (size_t start = first * n->outputs, stop; start < end; start = stop) {
    stop = smaller(start + together(n), end);
    clear(sums, (stop - start) * taps * LANES);
    for (size_t sample = 0; sample < n->samples; sample++)
      for (size_t kernel = start; kernel < stop; kernel += at_once) {
        const float *image = x + (sample * n->groups + kernel / n->outputs) * in;
        const float *of_g = g + (sample * kernels + kernel) * out;
        set_image(&v, image, smaller(at_once, stop - kernel), rows_read(n), n);
        for (size_t i = 0; i < n->out_h; i += 8) {
          fetch_part(image + at_once * in, at_once * in_row, i);
          fetch_part(of_g + at_once * out, at_once * n->out_w, i);
          for (size_t j = 0; j < n->out_w; j += LANES) {
            const struct column *columns = columns_of_vector(&v, j, n);
            made->dw(sums + (kernel - start) * taps * LANES, of_g + i * n->out_w + j, n->out_w, smaller(8, n->out_h - i), &v,
                     v.rows + i * n->stride_h, columns);
          }
        }
      }
    for (size_t kernel = start; kernel < stop; kernel += at_once) {
      const size_t other = smaller(kernel + 1, stop - 1); // if there is none, this one again, whose sums are in both halves
      store_sums(dw + kernel * taps, v.is_pair ? dw + other * taps : 0, sums + (kernel - start) * taps * LANES, taps);
    }
  }
}

// For the gradient of x with a stride of two: the sizes of the convolution, with flipped kernels, of g with zeros between its
// elements; return its functions, or null. Of small images these take less time than sums of few products each.
static const in_place *dilated_in_place(sizes *t, const sizes *n) {
  *t = *n;
  t->height = 2 * n->out_h - 1, t->width = 2 * n->out_w - 1, t->out_h = n->height, t->out_w = n->width;
  t->before_h = n->kernel_h - 1 - n->before_h, t->before_w = n->kernel_w - 1 - n->before_w;
  t->stride_h = t->stride_w = 1;
  const int fit = n->width <= LANES && n->stride_h == 2 && n->stride_w == 2 && n->outputs == 1 && n->dilation_w == 1 &&
                  n->before_h < n->kernel_h && n->before_w < n->kernel_w;
  return fit ? in_place_of(t) : 0;
}

static size_t dilated_at_once(const sizes *t) { return 8192 / (t->height * t->width) + 1; } // images, in L1 if they are small

static size_t dilated_scratch(const sizes *n) {
  sizes t;
  if (!dilated_in_place(&t, n)) return 0;
  return view_scratch(&t) + dilated_at_once(&t) * t.height * t.width + n->groups * taps_of(n);
}

// x (width,) = g with zeros between its elements
static void dilate_row(float *x, const float *g, size_t width) {
  for (size_t j = 0; j < width; j += LANES, g += LANES / 2) {
    const vf v = load_part(g, smaller(LANES, width - j + 1) / 2, 0.0f);
    store_part(x + j, smaller(LANES, width - j),
               __builtin_shufflevector(v, splat(0.0f), 0, 16, 1, 16, 2, 16, 3, 16, 4, 16, 5, 16, 6, 16, 7, 16));
  }
}

// tl_depthwise_dx_f32 as such a convolution.
static void convolve_dilated(const in_place *made, float *dx, const float *g, const float *w, size_t first, size_t last,
                       const sizes *n, const sizes *t, float *scratch) {
  const size_t image = t->height * t->width, taps = taps_of(n), at_once = dilated_at_once(t);
  float *dilated = scratch, *flipped = dilated + at_once * image, *rest = flipped + n->groups * taps;
  clear(dilated, at_once * image);
  g += first * n->out_h * n->out_w;
  for (size_t kernel = 0; kernel < n->groups; kernel++)
    for (size_t i = 0; i < taps; i++) flipped[kernel * taps + i] = w[kernel * taps + taps - 1 - i];
  for (size_t one = first; one < last; one += at_once) {
    const size_t end = smaller(one + at_once, last);
    for (size_t i = 0; i < end - one; i++)
      for (size_t r = 0; r < n->out_h; r++, g += n->out_w) dilate_row(dilated + i * image + 2 * r * t->width, g, t->width);
    convolve_in_place(made, dx, dilated - one * image, flipped, 0, one, end, t, rest);
  }
}
#endif

EXPORT size_t tl_depthwise_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const plane p = plane_of(n);
  const padded_gradient m = padded_gradient_of(n);
  const size_t all = taps_of(n) * n->outputs;
  const size_t forward = p.rows * p.row + n->out_h * p.width + floats_of(taps_of(n)) + n->width;
  const size_t offsets = 2 * all + n->stride_h * n->stride_w + 1;
  const size_t backward = n->outputs * m.rows * m.row + n->height * n->stride_w * m.column_row + all + floats_of(offsets);
  const size_t copies = forward > backward ? forward : backward;
#if defined __AVX512F__
  return copies + view_scratch(n) + dilated_scratch(n);
#else
  return copies;
#endif
}

EXPORT void tl_depthwise_f32(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                             const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
#if defined __AVX512F__
  const in_place *made = in_place_of(n);
  if (made) {
    convolve_in_place(made, y, x, w, bias, first, last, n, scratch);
    return;
  }
#endif
  const plane p = plane_of(n);
  const size_t taps = taps_of(n), x_row = n->stride_h * p.row;
  const int is_short = n->out_w < LANES; // then a row of y has no room for a vector
  float *copy = scratch, *out = copy + p.rows * p.row;
  const size_t *at = place_taps(out + n->out_h * p.width, n, &p);
  clear(copy, p.rows * p.row);
  for (size_t one = first; one < last; one++) {
    copy_in(copy, x + one * n->height * n->width, n->width, n, &p);
    for (size_t o = 0; o < n->outputs; o++) {
      size_t kernel = one % n->groups * n->outputs + o, pitch = is_short ? p.width : n->out_w;
      float *image = y + (one * n->outputs + o) * n->out_h * n->out_w, *to = is_short ? out : image;
      const float *own = w + kernel * taps, plus = bias ? bias[kernel] : 0.0f;
      for (size_t i = 0, rows = 0; (i = next_row(i, n->out_h)) < n->out_h; i += rows)
        for (size_t j = 0; j < n->out_w; j += LANES) {
          size_t column = is_short ? 0 : smaller(j, n->out_w - LANES); // the last vector may overlap the previous one
          const float *from = copy + i * x_row + column;
          rows = convolve_rows(n->out_h - i, to + i * pitch + column, pitch, from, x_row, at, own, taps, plus);
        }
      for (size_t i = 0; is_short && i < n->out_h; i++) copy_row(image + i * n->out_w, out + i * pitch, n->out_w);
    }
  }
}

// The positions of each output that are multiplied with rows and columns of x of the same remainders, one pair of remainders after the
// other: their indices in w, their offsets in g with zeros around it, and the first of each pair.
typedef struct {
  size_t *tap, *at, *begin;
} tap_groups;

static tap_groups group_taps(size_t *memory, const sizes *n, const padded_gradient *m) {
  const size_t taps = taps_of(n), all = n->outputs * taps;
  tap_groups found = {memory, memory + all, memory + 2 * all};
  size_t count = 0, *begin = found.begin;
  for (size_t row = 0; row < n->stride_h; row++)
    for (size_t column = 0; column < n->stride_w; column++) {
      *begin++ = count;
      for (size_t t = 0; t < all; t++) {
        size_t down = t % taps / n->kernel_w * n->dilation_h, right = t % n->kernel_w * n->dilation_w;
        if (down % n->stride_h != row || right % n->stride_w != column) continue;
        found.tap[count] = t;
        found.at[count++] = (t / taps * m->rows + m->above - down / n->stride_h) * m->row + m->before - right / n->stride_w;
      }
    }
  *begin = count;
  return found;
}

// x (width,) from one row of its copy
static void merge(float *x, const float *copy, size_t column_row, const sizes *n) {
  const size_t step = n->stride_w, first = n->before_w;
  size_t j = 0;
  if (step == 1) {
    copy_row(x, copy + first, n->width);
    return;
  }
  if (step == 2) {
    const float *even = copy + first % 2 * column_row + first / 2, *odd = copy + (first + 1) % 2 * column_row + (first + 1) / 2;
    for (; j + 8 <= n->width; j += 8) {
      quad a = *(const quad *)(even + j / 2), b = *(const quad *)(odd + j / 2);
      *(quad *)(x + j) = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      *(quad *)(x + j + 4) = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    }
    for (; j + 2 <= n->width; j += 2) x[j] = even[j / 2], x[j + 1] = odd[j / 2];
  }
  for (; j < n->width; j++) x[j] = copy[(first + j) % step * column_row + (first + j) / step];
}

// For each pair of remainders: the elements of dx are sums over the positions that are multiplied with them, as those of y are.
EXPORT void tl_depthwise_dx_f32(float *dx, const float *g, const float *w, size_t first, size_t last, const size_t *shape,
                                float *scratch) {
  const sizes *n = (const sizes *)shape;
#if defined __AVX512F__
  sizes t;
  const in_place *made = dilated_in_place(&t, n);
  if (made) {
    convolve_dilated(made, dx, g, w, first, last, n, &t, scratch);
    return;
  }
#endif
  const padded_gradient m = padded_gradient_of(n);
  const size_t all = taps_of(n) * n->outputs, image = m.rows * m.row, out_row = n->stride_w * m.column_row;
  float *in = scratch, *out = in + n->outputs * image, *weight = out + n->height * out_row;
  const tap_groups groups = group_taps(aligned(weight + all), n, &m);
  clear(in, n->outputs * image);
  for (size_t one = first; one < last; one++) {
    for (size_t o = 0; o < n->outputs; o++)
      for (size_t i = 0; i < smaller(n->out_h, m.rows - m.above); i++)
        copy_row(in + o * image + (m.above + i) * m.row + m.before, g + ((one * n->outputs + o) * n->out_h + i) * n->out_w,
                 smaller(n->out_w, m.column_row));
    for (size_t t = 0; t < all; t++) weight[t] = w[one % n->groups * all + groups.tap[t]];
    for (size_t pair = 0; pair < n->stride_h * n->stride_w; pair++) {
      const size_t row = pair / n->stride_w, begin = groups.begin[pair], count = groups.begin[pair + 1] - begin;
      // Row i · stride_h + row of x with zeros above it is i rows further.
      const size_t start = n->before_h > row ? (n->before_h - row + n->stride_h - 1) / n->stride_h : 0;
      const size_t top = start * n->stride_h + row - n->before_h;
      const size_t all = top < n->height ? (n->height - top + n->stride_h - 1) / n->stride_h : 0;
      for (size_t i = 0, rows = 0; (i = next_row(i, all)) < all; i += rows)
        for (size_t j = 0; j < m.column_row; j += LANES) {
          float *to = out + (top + i * n->stride_h) * out_row + pair % n->stride_w * m.column_row + j;
          rows = convolve_rows(all - i, to, n->stride_h * out_row, in + (start + i) * m.row + j, m.row, groups.at + begin,
                           weight + begin, count, 0.0f);
        }
    }
    for (size_t r = 0; r < n->height; r++) merge(dx + (one * n->height + r) * n->width, out + r * out_row, m.column_row, n);
  }
}

// sums += Σ g · x for some positions, over all windows
static inline __attribute__((always_inline)) void correlate(float *sums, const float *g, const float *x, const size_t *at,
                                                            const sizes *n, const plane *p, int places) {
  vf acc[4] = {0};
  for (size_t i = 0; i < n->out_h; i++, g += p->width, x += n->stride_h * p->row)
    for (size_t j = 0; j < p->width; j += LANES)
#pragma clang loop unroll(full)
      for (int t = 0; t < places; t++) acc[t] = fma(load(g + j), load(x + at[t] + j), acc[t]);
  for (int t = 0; t < places; t++) sums[t] += sum(acc[t]);
}

EXPORT void tl_depthwise_dw_f32(float *dw, const float *x, const float *g, size_t first, size_t last, const size_t *shape,
                                float *scratch) {
  const sizes *n = (const sizes *)shape;
#if defined __AVX512F__
  const in_place *made = in_place_of(n);
  if (made) {
    correlate_in_place(made, dw, x, g, first, last, n, scratch);
    return;
  }
#endif
  const plane p = plane_of(n);
  const size_t taps = taps_of(n);
  float *copy = scratch, *in = copy + p.rows * p.row;
  const size_t *at = place_taps(in + n->out_h * p.width, n, &p);
  clear(dw + first * n->outputs * taps, (last - first) * n->outputs * taps);
  clear(copy, p.rows * p.row);
  for (size_t channel = first; channel < last; channel++)
    for (size_t one = channel; one < n->samples * n->groups; one += n->groups) {
      copy_in(copy, x + one * n->height * n->width, n->width, n, &p);
      for (size_t o = 0; o < n->outputs; o++) {
        copy_gradient(in, g + (one * n->outputs + o) * n->out_h * n->out_w, n, &p);
        float *sums = dw + (channel * n->outputs + o) * taps;
        size_t t = 0;
        for (; t + 4 <= taps; t += 4) correlate(sums + t, in, copy, at + t, n, &p, 4);
        for (; t < taps; t++) correlate(sums + t, in, copy, at + t, n, &p, 1);
      }
    }
}
