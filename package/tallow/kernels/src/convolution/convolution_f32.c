// tl_convolution_f32      y[n, o, i] = bias[o] + Σ w[o, c, k] x[n, c, i · stride + k · dilation - before], over c and k
// tl_convolution_dx_f32   the gradient of x from g, the gradient of y: the adjoint of the map above in x
// tl_convolution_dw_f32   the gradient of w
//
//   shape   see `sizes`. x (samples, groups · channels, height, width), w (groups · outputs, channels, kernel_h, kernel_w),
//           y and g (samples, groups · outputs, out_h, out_w), bias (groups · outputs,) or null; i, k stand for two
//           indices each. Elements outside of x count as 0
//   range   groups of samples, or for dw positions in the last three dims of w, from `first` to `last`: calls for
//           different ranges write to different memory, and may run concurrently
//   layout  all contiguous      align  none needed      alias  outputs overlap nothing
//   scratch tl_convolution_scratch(shape) floats, contents irrelevant
//   error   ≤ (K / 4 + 8) ulp of the sum of the magnitudes of the K products
//
// Where direct.h takes less time, x is read as it lies. Otherwise windows are gathered into the columns of a matrix that is
// small enough to stay in L2: some positions of the windows, of whole channels, and a tile of y. A tile is of several samples
// if images are small, or of some rows or a part of one row. Tiles begin at the same places in each sample whatever the range,
// so that sums have one order.
#include "convolution/direct.h"
#include "convolution/planes.h"
#include "product/product.h"
#include "product/transpose.h"

enum { MATRIX = 65536, DEEP = 256, LEAST = 64 }; // floats of a matrix of columns; the rows to begin with; its fewest columns
enum { LINE = 64, SOME = 32 };                   // bytes of a cache line; channels whose kernels are flipped together

static size_t depth_of(const sizes *n) { return n->channels * n->kernel_h * n->kernel_w; }
static size_t parts_of(size_t n, size_t size) { return (n + size - 1) / size; }

// Return the most rows of a matrix of columns.
static size_t rows_of(const sizes *n) {
  size_t taps = n->kernel_h * n->kernel_w;
  return taps * smaller(n->channels, taps < DEEP ? DEEP / taps : 1);
}

typedef struct {
  size_t samples, rows, columns; // of y
} tile;

// Return the first tile; no tile is larger.
static __attribute__((noinline)) tile first_tile(const sizes *n) {
  const size_t rows = rows_of(n), half = n->outputs / 2, image = n->out_h * n->out_w;
  size_t fit = MATRIX / (rows > half ? rows : half); // of a tile of y, too, at most two such matrices
  if (fit < LEAST) fit = LEAST;
  if (fit < n->out_w) return (tile){1, 1, fit};
  if (fit < image) return (tile){1, fit / n->out_w, n->out_w};
  size_t samples = fit / image, area = samples * image;
  if (10 * rounded_up(area, 2 * LANES) > 11 * area) samples++; // or else much of the last two vectors would be empty
  return (tile){parts_of(n->samples, parts_of(n->samples, samples)), n->out_h, n->out_w};
}

static size_t columns_of(const sizes *n) { // at most
  tile one = first_tile(n);
  return one.samples * one.rows * one.columns;
}

static __attribute__((noinline)) size_t tiles_of(const sizes *n) { // in a sample
  tile one = first_tile(n);
  return parts_of(n->out_h, one.rows) * parts_of(n->out_w, one.columns);
}

// The part of each sample that is in a tile, as a smaller convolution.
typedef struct {
  sizes n;
  plane p;
  size_t in_x, in_y, area; // the first elements that it reads and writes in a channel; the size of what it writes
} box;

// Leave out `skipped` elements of one dim, which begins with zeros; return the number of those in x.
static size_t skip(size_t skipped, size_t *before, size_t *size) {
  size_t zeros = smaller(skipped, *before), elements = smaller(skipped - zeros, *size);
  *before -= zeros, *size -= elements;
  return elements;
}

static __attribute__((noinline)) box box_at(const sizes *n, size_t index) {
  tile one = first_tile(n);
  size_t across = parts_of(n->out_w, one.columns), top = index / across * one.rows, left = index % across * one.columns;
  box b = {.n = *n, .in_y = top * n->out_w + left};
  b.in_x = skip(top * n->stride_h, &b.n.before_h, &b.n.height) * n->width;
  b.in_x += skip(left * n->stride_w, &b.n.before_w, &b.n.width);
  b.n.out_h = smaller(one.rows, n->out_h - top), b.n.out_w = smaller(one.columns, n->out_w - left);
  b.p = plane_of(&b.n), b.area = b.n.out_h * b.n.out_w;
  return b;
}

// Where the parts of scratch memory are.
typedef struct {
  float *columns, *tile, *weight, *copy; // a tile of y or g; w or its gradient, transposed; a channel of x
  size_t row, weight_row;                // of columns and a tile of y; of the others
} memory;

static __attribute__((noinline)) memory divided(float *scratch, const sizes *n) {
  memory m = {.columns = (float *)rounded_up((uintptr_t)scratch, LINE)};
  m.row = row_of(columns_of(n)), m.weight_row = row_of(n->outputs);
  m.tile = after(m.columns, rows_of(n) * m.row);
  m.weight = after(m.tile, m.weight_row * m.row);
  const size_t depth = depth_of(n), transposed = m.weight_row * depth, flipped = n->outputs * row_of(depth);
  m.copy = after(m.weight, transposed > flipped ? transposed : flipped);
  return m;
}

static size_t scratch_of(const sizes *n) {
  const box b = box_at(n, 0);
  const memory m = divided(0, n);
  size_t floats = LINE / sizeof(float) + floats_from(m.columns, m.copy) + b.p.rows * b.p.row;
  const size_t direct = is_direct(n) ? direct_divided(0, n).floats : 0, dw = is_direct_dw(n) ? direct_dw_divided(0, n).floats : 0;
  if (floats < direct) floats = direct;
  return floats < dw ? dw : floats;
}

// Return whether the gradient of x is a convolution of g with flipped kernels, of these sizes; with at least eight outputs,
// for which columns of g cost less than to add up columns of x. Not in WASM, whose libraries have little room left.
static int flipped(sizes *t, const sizes *n) {
#if defined __wasm__
  (void)t, (void)n;
  return 0;
#else
  *t = *n;
  t->channels = n->outputs, t->outputs = n->channels;
  t->height = n->out_h, t->width = n->out_w, t->out_h = n->height, t->out_w = n->width;
  const size_t reach_h = (n->kernel_h - 1) * n->dilation_h, reach_w = (n->kernel_w - 1) * n->dilation_w;
  t->before_h = reach_h - n->before_h, t->before_w = reach_w - n->before_w;
  return n->stride_h * n->stride_w == 1 && n->kernel_h * n->kernel_w > 1 && n->channels >= 8 && n->before_h <= reach_h &&
         n->before_w <= reach_w;
#endif
}

EXPORT size_t tl_convolution_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  sizes t;
  const size_t own = scratch_of(n), of_flipped = flipped(&t, n) ? scratch_of(&t) : 0;
  return own > of_flipped ? own : of_flipped;
}

// Whether the matrix of columns is x itself, or that of a tile a part of each of its rows.
static int is_plain(const sizes *n, const box *b) {
  const int is_pointwise = n->kernel_h * n->kernel_w * n->stride_h * n->stride_w == 1 && n->before_h + n->before_w == 0;
  return is_pointwise && n->out_h == n->height && b->n.out_w == n->width;
}

#if LANES == 16
typedef float eight __attribute__((vector_size(32), aligned(4)));
#endif

// Fill rows `first` to `last` of the matrix of columns of a tile, `row` apart; what follows the columns is undefined.
static __attribute__((noinline)) void gather(float *columns, size_t row, const float *x, const sizes *n, const box *b,
                                             size_t samples, size_t first, size_t last, float *copy) {
  const size_t taps = n->kernel_h * n->kernel_w, pitch = n->stride_h * b->p.row, width = b->n.out_w;
  const int plain = is_plain(n, b);
  clear(copy, b->p.rows * b->p.row);
  for (size_t s = 0; s < samples; s++)
    for (size_t channel = first / taps; channel < parts_of(last, taps); channel++) {
      const float *in = x + (s * n->groups * n->channels + channel) * n->height * n->width + b->in_x;
      if (plain) {
        copy_row(columns + (channel - first) * row + s * b->area, in, b->area);
        continue;
      }
      copy_in(copy, in, n->width, &b->n, &b->p);
      // Of a later channel, which is far away, the rows that the previous tile has not read.
      const size_t rows = smaller(b->n.height, b->p.rows), fresh = smaller(rows, b->n.out_h * n->stride_h);
      fetch(in + (2 * n->height + rows - fresh) * n->width, fresh * n->width);
      for (size_t t = 0, h = 0, w = 0; t < taps; t++, w + 1 < n->kernel_w ? w++ : (w = 0, h++)) {
        size_t r = channel * taps + t;
        if (r < first || r >= last) continue;
        const float *from = copy + place_of(n, &b->p, h, w);
        float *to = columns + (r - first) * row + s * b->area; // the next row overwrites the end of the last vector
#if LANES == 16
#define SHORT(of) /* short vectors are in one cache line more often */                                                   \
  if (width * sizeof(float) <= sizeof(of)) {                                                                             \
    for (size_t i = 0; i < b->n.out_h; i++, from += pitch, to += width) *(of *)to = *(const of *)from;                   \
    continue;                                                                                                            \
  }
        SHORT(quad) SHORT(eight) SHORT(vf_unaligned)
#undef SHORT
#endif
        for (size_t i = 0; i < b->n.out_h; i++, from += pitch, to += width)
          for (size_t j = 0; j < width; j += LANES) store(to + j, load(from + j));
      }
    }
}

// x += the copy
static __attribute__((noinline)) void add_out(float *x, size_t x_row, const float *copy, const sizes *n, const plane *p) {
  for (size_t s = 0; s < n->stride_w; s++) {
    size_t column;
    range inside = columns_inside(s, n, p, &column);
    for (size_t r = 0; r < n->height && r + n->before_h < p->rows; r++) {
      const float *in = copy + (r + n->before_h) * p->row + s * p->column_row;
      float *out = x + r * x_row + column;
      size_t j = inside.from;
      if (n->stride_w == 1)
        for (; j + LANES <= inside.to; j += LANES, out += LANES) store(out, load(out) + load(in + j));
#pragma clang loop vectorize(disable)
      for (; j < inside.to; j++, out += n->stride_w) *out += in[j];
    }
  }
}

// The adjoint of gather, for whole channels: add rows of the matrix of columns to their source.
static void scatter(float *x, const float *columns, size_t row, const sizes *n, const box *b, size_t samples, size_t first,
                    size_t last, float *copy) {
  const size_t taps = n->kernel_h * n->kernel_w, pitch = n->stride_h * b->p.row, width = b->n.out_w;
  const size_t whole = width / LANES * LANES;
  vi rest;
  for (size_t i = 0; i < LANES; i++) rest[i] = whole + i < width ? -1 : 0;
  const int plain = is_plain(n, b);
  for (size_t s = 0; s < samples; s++)
    for (size_t channel = first / taps; channel < last / taps; channel++) {
      float *out = x + (s * n->groups * n->channels + channel) * n->height * n->width + b->in_x;
      if (plain) {
        copy_row(out, columns + (channel - first) * row + s * b->area, b->area);
        continue;
      }
      clear(copy, b->p.rows * b->p.row);
      for (size_t t = 0; t < taps; t++) {
        float *to = copy + place_of(n, &b->p, t / n->kernel_w, t % n->kernel_w);
        const float *from = columns + (channel * taps + t - first) * row + s * b->area;
        for (size_t i = 0; i < b->n.out_h; i++, from += width, to += pitch) {
          for (size_t j = 0; j < whole; j += LANES) store(to + j, load(to + j) + load(from + j));
          if (whole < width) store(to + whole, load(to + whole) + select(rest, load(from + whole), splat(0.0f)));
        }
      }
      add_out(out, n->width, copy, &b->n, &b->p);
    }
}

static size_t pixels_of(const sizes *n) { return n->channels * n->height * n->width; } // of a group

// Return the samples that have a group in the range.
static range samples_of(const sizes *n, size_t group, size_t first, size_t last) {
  return (range){first > group ? parts_of(first - group, n->groups) : 0, last > group ? parts_of(last - group, n->groups) : 0};
}

// y (channels, outputs · taps), rows y_row apart, from w (outputs, channels, taps), its taps in reverse order
static void flip(float *y, size_t y_row, const float *w, size_t outputs, size_t channels, size_t taps) {
  for (size_t first = 0; first < channels; first += SOME) // so that the ends of these rows of y stay in L1
    for (size_t o = 0; o < outputs; o++) {
      const float *from = w + (o * channels + first) * taps;
      float *to = y + first * y_row + o * taps;
      fetch(from + channels * taps, SOME * taps);
      for (size_t c = first; c < smaller(first + SOME, channels); c++, from += taps, to += y_row)
#if HAS_MASKS
        if (taps <= LANES) {
          const vf v = load_part(from, taps, 0.0f);
          const vf reversed = __builtin_shufflevector(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
          store_lanes(to + taps - LANES, reversed, (uint16_t)(0xffff << (LANES - taps)));
        } else
#endif
#pragma clang loop vectorize(disable)
          for (size_t t = 0; t < taps; t++) to[t] = from[taps - 1 - t];
    }
}

// tl_convolution_f32, or with `is_flipped` kernels in w (outputs, channels, taps) the gradient that is a convolution
static void convolve(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last, const sizes *n,
                     float *scratch, int is_flipped) {
  const memory m = divided(scratch, n);
  const size_t depth = depth_of(n), deep = rows_of(n), image = n->out_h * n->out_w, at_once = first_tile(n).samples;
  for (size_t group = 0; group < n->groups; group++) {
    const range own = samples_of(n, group, first, last);
    if (is_direct(n)) {
      convolve_directly(y, x, w, bias, group, own, n, scratch, is_flipped);
      continue;
    }
    const float *weight = w + group * n->outputs * depth;
    const size_t weight_row = is_flipped ? row_of(depth) : depth;
    if (is_flipped) flip(m.weight, weight_row, weight, n->channels, n->outputs, n->kernel_h * n->kernel_w), weight = m.weight;
    for (size_t sample = own.from; sample < own.to; sample += at_once) {
      size_t one = sample * n->groups + group, samples = smaller(at_once, own.to - sample);
      for (size_t t = 0; t < tiles_of(n); t++) {
        const box b = box_at(n, t);
        for (size_t p = 0; p < depth; p += deep) {
          size_t end = smaller(p + deep, depth);
          gather(m.columns, m.row, x + one * pixels_of(n), n, &b, samples, p, end, m.copy);
          product(m.tile, m.row, weight + p, (ptrdiff_t)weight_row, 1, m.columns, m.row, n->outputs, end - p,
                  to_lanes(samples * b.area), p > 0);
        }
        for (size_t s = 0; s < samples; s++)
          for (size_t o = 0; o < n->outputs; o++) {
            float *to = y + ((one + s * n->groups) * n->outputs + o) * image + b.in_y;
            const float *from = m.tile + o * m.row + s * b.area, plus = bias ? bias[group * n->outputs + o] : 0.0f;
            for (size_t i = 0; i < b.area; i++) to[i] = from[i] + plus;
          }
      }
    }
  }
}

EXPORT void tl_convolution_f32(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                               const size_t *shape, float *scratch) {
  convolve(y, x, w, bias, first, last, (const sizes *)shape, scratch, 0);
}

// Copy a tile of g, and clear what follows it in its last vectors.
static __attribute__((noinline)) void copy_tile(float *tile, size_t row, const float *g, const sizes *n, const box *b,
                                                size_t samples) {
  for (size_t o = 0; o < n->outputs; o++, tile += row) {
    float *to = tile;
    for (size_t s = 0; s < samples; s++, to += b->area)
      copy_row(to, g + (s * n->groups * n->outputs + o) * n->out_h * n->out_w, b->area);
    clear(to, to_lanes(samples * b->area) - samples * b->area);
  }
}

EXPORT void tl_convolution_dx_f32(float *dx, const float *g, const float *w, size_t first, size_t last, const size_t *shape,
                                  float *scratch) {
  const sizes *n = (const sizes *)shape;
  sizes t;
  if (flipped(&t, n)) {
    convolve(dx, g, w, 0, first, last, &t, scratch, 1);
    return;
  }
  const memory m = divided(scratch, n);
  const size_t depth = depth_of(n), deep = rows_of(n), image = n->out_h * n->out_w, at_once = first_tile(n).samples;
  clear(dx + first * pixels_of(n), (last - first) * pixels_of(n));
  for (size_t group = 0; group < n->groups; group++) {
    const range own = samples_of(n, group, first, last);
    transpose(m.weight, m.weight_row, w + group * n->outputs * depth, depth, n->outputs, depth);
    for (size_t sample = own.from; sample < own.to; sample += at_once) {
      size_t one = sample * n->groups + group, samples = smaller(at_once, own.to - sample);
      for (size_t t = 0; t < tiles_of(n); t++) {
        const box b = box_at(n, t);
        size_t area = samples * b.area;
        copy_tile(m.tile, m.row, g + one * n->outputs * image + b.in_y, n, &b, samples);
        for (size_t p = 0; p < depth; p += deep) {
          size_t end = smaller(p + deep, depth);
          product(m.columns, m.row, m.weight + p * m.weight_row, (ptrdiff_t)m.weight_row, 1, m.tile, m.row, end - p, n->outputs,
                  to_lanes(area), 0);
          scatter(dx + one * pixels_of(n), m.columns, m.row, n, &b, samples, p, end, m.copy);
        }
      }
    }
  }
}

// The most outputs that are few; and the columns of a tile of sums, which has four rows.
#if VECTOR_REGISTERS == 32
enum { FEW = 16, WIDE = 4 };
#elif defined __AVX2__
enum { FEW = 12, WIDE = 3 };
#elif defined __wasm__
enum { FEW = 16, WIDE = 2 };
#else
enum { FEW = 0, WIDE = 2 }; // small first, see build_kernels.py
#endif

// sums (n, m), sums_row apart, += b (n, k) @ a (m, k)ᵀ for at most `rows`, 4 or 1, of m, and 4 · WIDE sums
static inline __attribute__((always_inline)) void tile_of_dots(float *sums, size_t sums_row, const float *a, const float *b,
                                                               size_t row, size_t m, size_t n, size_t k, size_t rows) {
  const size_t wide = 4 * WIDE / rows;
  vf acc[4 * WIDE] = {0}, made[4 * WIDE];
  const float *of_a[4], *of_b[4 * WIDE]; // beyond the last row that one again
#pragma clang loop unroll(full)
  for (size_t r = 0; r < rows; r++) of_a[r] = a + smaller(r, m - 1) * row;
#pragma clang loop unroll(full)
  for (size_t c = 0; c < wide; c++) of_b[c] = b + smaller(c, n - 1) * row;
  for (size_t p = 0; p < k; p += LANES)
#pragma clang loop unroll(full)
    for (size_t r = 0; r < rows; r++)
#pragma clang loop unroll(full)
      for (size_t c = 0; c < wide; c++) acc[c * rows + r] = fma(load(of_a[r] + p), load(of_b[c] + p), acc[c * rows + r]);
#pragma clang loop unroll(full)
  for (size_t i = 0; i < 4 * WIDE; i++) made[i] = acc[i];
  for (size_t i = 0; i < 4 * WIDE; i += 4) {
    const quad four = four_sums(made[i], made[i + 1], made[i + 2], made[i + 3]);
    for (size_t j = i; j < i + 4; j++)
      if (j % rows < m && j / rows < n) sums[j / rows * sums_row + j % rows] += ((const float *)&four)[j - i];
  }
}

// sums (n, m), sums_row apart, += b (n, k) @ a (m, k)ᵀ, whose rows are `row` apart; k is a multiple of LANES
static __attribute__((noinline)) void add_dots(float *sums, size_t sums_row, const float *a, const float *b, size_t row,
                                               size_t m, size_t n, size_t k) {
  for (size_t i = 0; i < m; i += 4, sums += 4, a += 4 * row)
#if defined __wasm__ // such as the last of 5 · 5 positions: a tile of four rows would take as long as for four
    if (m - i == 1)
      for (size_t j = 0; j < n; j += 4 * WIDE) tile_of_dots(sums + j * sums_row, sums_row, a, b + j * row, row, 1, n - j, k, 1);
    else
#endif
      for (size_t j = 0; j < n; j += WIDE) tile_of_dots(sums + j * sums_row, sums_row, a, b + j * row, row, m - i, n - j, k, 4);
}

// The gradient for few outputs, where vectors are along the pixels: few of them would be whole along the outputs. Of few
// positions, too: to transpose g would take longer than the products.
static __attribute__((noinline, minsize)) void dw_of_few(float *dw, const float *x, const float *g, size_t first, size_t last,
                                                         const sizes *n, const memory *m) {
  const size_t depth = depth_of(n), deep = rows_of(n), at_once = first_tile(n).samples;
  for (size_t group = 0; group < n->groups; group++) {
    clear(m->weight, n->outputs * (last - first));
    for (size_t sample = 0; sample < n->samples; sample += at_once) {
      size_t one = sample * n->groups + group, samples = smaller(at_once, n->samples - sample);
      for (size_t t = 0; t < tiles_of(n); t++) {
        const box b = box_at(n, t);
        size_t area = samples * b.area, rest = to_lanes(area) - area;
        copy_tile(m->tile, m->row, g + one * n->outputs * n->out_h * n->out_w + b.in_y, n, &b, samples);
        for (size_t p = first; p < last; p += deep) {
          size_t end = smaller(p + deep, last);
          gather(m->columns, m->row, x + one * pixels_of(n), n, &b, samples, p, end, m->copy);
          for (size_t r = 0; r < end - p; r++) clear(m->columns + r * m->row + area, rest);
          add_dots(m->weight + p - first, last - first, m->columns, m->tile, m->row, end - p, n->outputs, area + rest);
        }
      }
    }
    for (size_t o = 0; o < n->outputs; o++)
      copy_row(dw + (group * n->outputs + o) * depth + first, m->weight + o * (last - first), last - first);
  }
}

EXPORT __attribute__((minsize)) void tl_convolution_dw_f32(float *dw, const float *x, const float *g, size_t first, size_t last,
                                                           const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
  if (is_direct_dw(n)) {
    correlate_directly(dw, x, g, first, last, n, scratch);
    return;
  }
  const memory m = divided(scratch, n);
  const size_t depth = depth_of(n), deep = rows_of(n), image = n->out_h * n->out_w, at_once = first_tile(n).samples;
  // Gradients of so many rows of columns are computed together that they stay in L2, and g is transposed once for them.
  const size_t outputs = to_lanes(n->outputs), fit = 2 * MATRIX / (deep * m.weight_row), together = fit ? fit * deep : deep;
  if (FEW > 0 && (n->outputs <= FEW || depth <= 2 * FEW)) {
    dw_of_few(dw, x, g, first, last, n, &m);
    return;
  }
  clear(m.tile, m.weight_row * m.row);
  for (size_t group = 0; group < n->groups; group++)
    for (size_t start = first; start < last; start += together) {
      const size_t stop = smaller(start + together, last);
      clear(m.weight, (stop - start) * m.weight_row);
      for (size_t sample = 0; sample < n->samples; sample += at_once) {
        size_t one = sample * n->groups + group, samples = smaller(at_once, n->samples - sample);
        for (size_t t = 0; t < tiles_of(n); t++) {
          const box b = box_at(n, t);
          for (size_t s = 0; s < samples; s++)
            transpose(m.tile + s * b.area * m.weight_row, m.weight_row,
                      g + (one + s * n->groups) * n->outputs * image + b.in_y, image, n->outputs, b.area);
          for (size_t p = start; p < stop; p += deep) {
            size_t end = smaller(p + deep, stop);
            gather(m.columns, m.row, x + one * pixels_of(n), n, &b, samples, p, end, m.copy);
            product(m.weight + (p - start) * m.weight_row, m.weight_row, m.columns, (ptrdiff_t)m.row, 1, m.tile, m.weight_row,
                    end - p, samples * b.area, outputs, 1);
          }
        }
      }
      transpose(dw + group * n->outputs * depth + start, depth, m.weight, m.weight_row, stop - start, n->outputs);
    }
}
