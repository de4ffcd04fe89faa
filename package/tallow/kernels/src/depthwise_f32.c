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
#include "planes.h"

static size_t taps_of(const sizes *n) { return n->kernel_h * n->kernel_w; }

// For the gradient of x: g with zeros around it, where elements of x that are a stride apart meet adjacent elements of g;
// and a copy of x with columns sorted by remainder.
typedef struct {
  size_t above, before; // rows and columns of zeros
  size_t rows, row;     // of g with zeros, for each output of a channel
  size_t column_row;    // of the copy of x: the columns of a remainder, whole vectors
} mirror;

static mirror mirror_of(const sizes *n) {
  mirror m = {(n->kernel_h - 1) * n->dilation_h / n->stride_h, (n->kernel_w - 1) * n->dilation_w / n->stride_w, 0, 0, 0};
  m.column_row = to_lanes((n->before_w + n->width - 1) / n->stride_w + 1);
  m.rows = m.above + (n->before_h + n->height - 1) / n->stride_h + 1, m.row = m.before + m.column_row;
  return m;
}

// The floats that begin at an address of `count` offsets.
static size_t floats_of(size_t count) { return (count + 1) * (sizeof(size_t) / sizeof(float)); }

EXPORT size_t tl_depthwise_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const plane p = plane_of(n);
  const mirror m = mirror_of(n);
  const size_t all = taps_of(n) * n->outputs;
  const size_t forward = p.rows * p.row + n->out_h * p.width + floats_of(taps_of(n)) + n->width;
  const size_t offsets = 2 * all + n->stride_h * n->stride_w + 1;
  const size_t backward = n->outputs * m.rows * m.row + n->height * n->stride_w * m.column_row + all + floats_of(offsets);
  return forward > backward ? forward : backward;
}

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
static inline __attribute__((always_inline)) void meet(float *y, size_t y_row, const float *x, size_t x_row, const size_t *at,
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

// The same for up to `rows` rows; return how many.
static __attribute__((noinline)) size_t meet_some(size_t rows, float *y, size_t y_row, const float *x, size_t x_row,
                                                  const size_t *at, const float *w, size_t taps, float bias) {
  if (rows >= 8) {
    meet(y, y_row, x, x_row, at, w, taps, bias, 8);
    return 8;
  }
  if (rows >= 4) {
    meet(y, y_row, x, x_row, at, w, taps, bias, 4);
    return 4;
  }
  meet(y, y_row, x, x_row, at, w, taps, bias, 1);
  return 1;
}

#if defined __AVX512F__
// Of sixteen elements from `first` on, those that are inside of a row.
static uint16_t inside_row(ptrdiff_t first, size_t width) {
  const ptrdiff_t end = (ptrdiff_t)width - first;
  return part_of(end > 0 ? (size_t)end : 0, 0) & (uint16_t)~part_of(first < 0 ? (size_t)-first : 0, 0);
}

// Where a vector of some rows of y is, in x: the rows, and the column of the first element that its first window reads.
typedef struct {
  const float *const *rows;
  ptrdiff_t column;
  size_t width, kernel_w, dilation_w;
} view;

// `count` elements of each of `rows` rows of y, for kernels of `taps_h` rows and a stride of `step`. x is read in place, 0
// outside of it: a row once for each column of the kernel, for all rows of y that it meets.
static inline __attribute__((always_inline)) void slide(float *y, size_t y_row, size_t count, const view *x, const float *w,
                                                        float bias, int taps_h, int step, int rows) {
  vf acc[8], weight[7];
  ptrdiff_t column = x->column;
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) acc[i] = splat(bias);
  for (size_t c = 0; c < x->kernel_w; c++, column += x->dilation_w) {
    const uint16_t low = inside_row(column, x->width), high = inside_row(column + LANES, x->width);
#pragma clang loop unroll(full)
    for (int h = 0; h < taps_h; h++) weight[h] = splat(w[(size_t)h * x->kernel_w + c]);
#pragma clang loop unroll(full)
    for (int r = 0; r < step * (rows - 1) + taps_h; r++) {
      const float *from = x->rows[r] + column;
      vf v = __builtin_ia32_loadups512_mask(from, splat(0.0f), low);
      if (step == 2) {
        vf next = __builtin_ia32_loadups512_mask(from + LANES, splat(0.0f), high);
        v = __builtin_shufflevector(v, next, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      }
#pragma clang loop unroll(full)
      for (int i = 0; i < rows; i++)
        if (r >= i * step && r < i * step + taps_h) acc[i] = fma(weight[r - i * step], v, acc[i]);
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store_part(y + (size_t)i * y_row, count, acc[i]);
}

typedef void slider(float *y, size_t y_row, size_t count, const view *x, const float *w, float bias);
#define SLIDE(taps_h, step, rows)                                                                                        \
  static __attribute__((noinline)) void slide_##taps_h##_##step##_##rows(float *y, size_t y_row, size_t count,           \
                                                                         const view *x, const float *w, float bias) {    \
    slide(y, y_row, count, x, w, bias, taps_h, step, rows);                                                              \
  }
#define SLIDES(taps_h, step) SLIDE(taps_h, step, 4) SLIDE(taps_h, step, 8)
SLIDES(3, 1) SLIDES(3, 2) SLIDES(5, 1) SLIDES(5, 2) SLIDES(7, 1)

// Return the functions for four and for eight rows, or null.
static slider *const *sliders_of(const sizes *n) {
#define CASE(taps_h, step)                                                                                               \
  static slider *const of_##taps_h##_##step[] = {slide_##taps_h##_##step##_4, slide_##taps_h##_##step##_8};              \
  if (n->kernel_h == taps_h && n->stride_h == step) return of_##taps_h##_##step;
  if (n->dilation_h > 1 || n->stride_w != n->stride_h || n->out_h < 4) return 0;
  CASE(3, 1) CASE(3, 2) CASE(5, 1) CASE(5, 2) CASE(7, 1)
  return 0;
}

// Prefetch a part of the next image of `size` elements, while rows from `i` on of `rows` are computed: the processor does not
// foresee what windows read in place.
static void fetch_part(const float *image, size_t size, size_t i, size_t rows) {
  fetch(image + i * size / rows, 8 * size / rows);
}

// tl_depthwise_f32 with such functions. The last rows of an image may be computed twice.
static void slide_over(slider *const *of, float *y, const float *x, const float *w, const float *bias, size_t first,
                       size_t last, const sizes *n, float *scratch) {
  const size_t all = (n->out_h - 1) * n->stride_h + n->kernel_h;
  const float **rows = (const float **)aligned(scratch), *zeros = (const float *)(rows + all);
  clear((float *)(rows + all), n->width);
  view v = {.width = n->width, .kernel_w = n->kernel_w, .dilation_w = n->dilation_w};
  for (size_t one = first * n->outputs; one < last * n->outputs; one++) {
    const size_t kernel = one % (n->groups * n->outputs);
    const float *from = x + one / n->outputs * n->height * n->width, *own = w + kernel * taps_of(n);
    float *to = y + one * n->out_h * n->out_w;
    for (size_t r = 0; r < all; r++) rows[r] = r - n->before_h < n->height ? from + (r - n->before_h) * n->width : zeros;
    for (size_t i = 0; i < n->out_h;) {
      size_t eight = n->out_h >= 8 && n->out_h - i > 4, made = eight ? 8 : 4, top = smaller(i, n->out_h - made);
      v.rows = rows + top * n->stride_h;
      fetch_part(from + n->height * n->width, n->height * n->width, i, n->out_h);
      fetch_part(to + n->out_h * n->out_w, n->out_h * n->out_w, i, n->out_h);
      for (size_t j = 0; j < n->out_w; j += LANES) {
        v.column = (ptrdiff_t)(j * n->stride_w) - (ptrdiff_t)n->before_w;
        of[eight](to + top * n->out_w + j, n->out_w, smaller(LANES, n->out_w - j), &v, own, bias ? bias[kernel] : 0.0f);
      }
      i = top + made;
    }
  }
}
#endif

EXPORT void tl_depthwise_f32(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                             const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
#if defined __AVX512F__
  slider *const *sliders = sliders_of(n);
  if (sliders) {
    slide_over(sliders, y, x, w, bias, first, last, n, scratch);
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
      for (size_t i = 0, rows = 0; i < n->out_h; i += rows)
        for (size_t j = 0; j < n->out_w; j += LANES) {
          size_t column = is_short ? 0 : smaller(j, n->out_w - LANES); // the last vector may overlap the previous one
          const float *from = copy + i * x_row + column;
          rows = meet_some(n->out_h - i, to + i * pitch + column, pitch, from, x_row, at, own, taps, plus);
        }
      for (size_t i = 0; is_short && i < n->out_h; i++) copy_row(image + i * n->out_w, out + i * pitch, n->out_w);
    }
  }
}

// The positions of each output that meet rows and columns of x of the same remainders, one pair of remainders after the
// other: their indices in w, their offsets in g with zeros around it, and the first of each pair.
typedef struct {
  size_t *tap, *at, *begin;
} meetings;

static meetings find_meetings(size_t *memory, const sizes *n, const mirror *m) {
  const size_t taps = taps_of(n), all = n->outputs * taps;
  meetings found = {memory, memory + all, memory + 2 * all};
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
  }
  for (; j < n->width; j++) x[j] = copy[(first + j) % step * column_row + (first + j) / step];
}

// For each pair of remainders: the elements of dx are sums over the positions that meet them, as those of y are.
EXPORT void tl_depthwise_dx_f32(float *dx, const float *g, const float *w, size_t first, size_t last, const size_t *shape,
                                float *scratch) {
  const sizes *n = (const sizes *)shape;
  const mirror m = mirror_of(n);
  const size_t all = taps_of(n) * n->outputs, image = m.rows * m.row, out_row = n->stride_w * m.column_row;
  float *in = scratch, *out = in + n->outputs * image, *weight = out + n->height * out_row;
  const meetings found = find_meetings(aligned(weight + all), n, &m);
  clear(in, n->outputs * image);
  for (size_t one = first; one < last; one++) {
    for (size_t o = 0; o < n->outputs; o++)
      for (size_t i = 0; i < smaller(n->out_h, m.rows - m.above); i++)
        copy_row(in + o * image + (m.above + i) * m.row + m.before, g + ((one * n->outputs + o) * n->out_h + i) * n->out_w,
                 smaller(n->out_w, m.column_row));
    for (size_t t = 0; t < all; t++) weight[t] = w[one % n->groups * all + found.tap[t]];
    for (size_t pair = 0; pair < n->stride_h * n->stride_w; pair++) {
      const size_t row = pair / n->stride_w, begin = found.begin[pair], met = found.begin[pair + 1] - begin;
      // Row i · stride_h + row of x with zeros above it is i rows further.
      size_t i = n->before_h > row ? (n->before_h - row + n->stride_h - 1) / n->stride_h : 0, rows = 0;
      for (size_t r; (r = i * n->stride_h + row - n->before_h) < n->height; i += rows)
        for (size_t j = 0; j < m.column_row; j += LANES) {
          float *to = out + r * out_row + pair % n->stride_w * m.column_row + j;
          const float *from = in + i * m.row + j;
          rows = meet_some((n->height - r + n->stride_h - 1) / n->stride_h, to, n->stride_h * out_row, from, m.row,
                           found.at + begin, weight + begin, met, 0.0f);
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
