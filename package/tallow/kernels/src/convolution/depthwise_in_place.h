// Depthwise convolutions whose windows read x as it lies, where some lanes of a vector can be loaded alone: an edge of an image
// is a mask. Kernels of 3, 5 and 7 rows, and their gradients; see depthwise_f32.c for the contract, and for all others.
//
// Each of the functions at the end returns whether it has computed the result; without such vectors none does.

#ifndef TALLOW_DEPTHWISE_IN_PLACE_H
#define TALLOW_DEPTHWISE_IN_PLACE_H

#include "convolution/planes.h"
#include "product/transpose.h"

static inline size_t taps_of(const sizes *n) { return n->kernel_h * n->kernel_w; }

// The floats that begin at an address of `count` offsets.
static inline size_t floats_of(size_t count) { return (count + 1) * (sizeof(size_t) / sizeof(float)); }

static inline size_t *aligned(float *scratch) {
  return (size_t *)(((uintptr_t)scratch + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t));
}

#if HAS_MASKS
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
  const vf low = load_lanes(from, splat(0.0f), column.low);
  if (step == 1 && !halves) return low;
  const vf both = load_lanes(from + part, step == 1 ? low : splat(0.0f), column.high);
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
    store_lanes(y, acc[i], x->first);
    if (halves) store_lanes(y + x->half, acc[i], x->second);
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
    of_g[i] = load_lanes(from, splat(0.0f), i < rows ? x->first : 0);
    if (halves) of_g[i] = load_lanes(from + x->half, of_g[i], i < rows ? x->second : 0);
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

static size_t in_place_scratch(const sizes *n) { return view_scratch(n) + dilated_scratch(n); }

static int depthwise_in_place(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                              const sizes *n, float *scratch) {
  const in_place *made = in_place_of(n);
  if (made) convolve_in_place(made, y, x, w, bias, first, last, n, scratch);
  return made != 0;
}

static int depthwise_dx_in_place(float *dx, const float *g, const float *w, size_t first, size_t last, const sizes *n,
                                 float *scratch) {
  sizes t;
  const in_place *made = dilated_in_place(&t, n);
  if (made) convolve_dilated(made, dx, g, w, first, last, n, &t, scratch);
  return made != 0;
}

static int depthwise_dw_in_place(float *dw, const float *x, const float *g, size_t first, size_t last, const sizes *n,
                                 float *scratch) {
  const in_place *made = in_place_of(n);
  if (made) correlate_in_place(made, dw, x, g, first, last, n, scratch);
  return made != 0;
}
#else
static inline size_t in_place_scratch(const sizes *n) { return (void)n, (size_t)0; }

// The same arguments as above, which nothing reads.
#define depthwise_in_place(...) 0
#define depthwise_dx_in_place(...) 0
#define depthwise_dw_in_place(...) 0
#endif

#endif
