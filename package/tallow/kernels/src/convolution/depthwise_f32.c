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
// A channel of x is first copied with zero padding (planes.h). Where parts of a vector can be loaded, the usual convolutions read
// x in place (depthwise_in_place.h).
#include "convolution/depthwise_in_place.h"

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

EXPORT size_t tl_depthwise_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const plane p = plane_of(n);
  const padded_gradient m = padded_gradient_of(n);
  const size_t all = taps_of(n) * n->outputs;
  const size_t forward = p.rows * p.row + n->out_h * p.width + floats_of(taps_of(n)) + n->width;
  const size_t offsets = 2 * all + n->stride_h * n->stride_w + 1;
  const size_t backward = n->outputs * m.rows * m.row + n->height * n->stride_w * m.column_row + all + floats_of(offsets);
  const size_t copies = forward > backward ? forward : backward;
  return copies + in_place_scratch(n);
}

EXPORT void tl_depthwise_f32(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                             const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
  if (depthwise_in_place(y, x, w, bias, first, last, n, scratch)) return;
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
  if (depthwise_dx_in_place(dx, g, w, first, last, n, scratch)) return;
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
  if (depthwise_dw_in_place(dw, x, g, first, last, n, scratch)) return;
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
