// Convolutions whose vectors are along the outputs, and whose windows are not gathered:
//
//   sums (points, outputs)      += x (points, window) @ kernels (window, outputs)    of y; a point is a place in an image of y
//   gradients (window, outputs) += x (window, points) @ g (points, outputs)          of w
//
// An element of x is broadcast to a vector as it is read, from x itself: for points of which the same positions of the
// window are inside x, it is equally far from the first one. So nothing is copied with zeros around it, zeros are not
// multiplied, and images need not fill vectors. Only w or g is transposed before, and the sums after, which is little for
// many points and many outputs. On one core of a Zen 5 with AVX-512 it takes 0.8 of the time of gathered windows for 64
// channels of 14 x 14, and 0.75 for 512 of 4 x 4, where a third of all products is with zeros.

#ifndef TALLOW_DIRECT_H
#define TALLOW_DIRECT_H

#include "convolution/planes.h"
#include "product/transpose.h"

enum {
#if VECTOR_REGISTERS == 32
  ROWS = 8, // 16 sums
#else
  ROWS = 6, // 12 sums, two vectors of kernels and one element of x: sixteen registers
#endif
  PAIR = 2 * LANES,   // outputs whose sums are in a tile
  CORNERS = 8,        // samples at once, whose corners fill a tile
  LEAST_POINTS = 192, // of which few are in tiles that are not full
  SUMS = 1 << 17,     // floats, in L2
  KERNELS = 1 << 22,  // floats at most, of which each thread has a copy
  WINDOW = 320,       // elements of a window at once, in whole channels: the kernels of a pair of vectors are in L1
  GRADIENTS = 512,    // points at once, whose gradients of a pair of vectors are near
};

// A row of a tile: where the first element of x lies, and the sums.
typedef struct {
  const float *x;
  float *sums;
} direct_row;

// How far the next element of x lies from the first one, and its vectors from the first ones.
typedef struct {
  size_t x, vectors;
} step;

// What is added to the rows of a tile: the same steps for each of `count` channels, or samples.
typedef struct {
  direct_row rows[ROWS];
  size_t filled;
  const step *steps, *end;
  size_t count, next_x, next_vectors; // how far apart they are
  const float *vectors, *plus;        // `plus` is added to the first products; null: the sums so far
  float *rest;                        // the sums of rows that are not filled
  int is_single;                      // one vector of sums in a row rather than a pair
} direct_tile;

static inline __attribute__((always_inline)) void add_products(const direct_tile *t, int wide) {
  vf acc[ROWS][2] = {0};
  const float *x[ROWS], *vectors = t->vectors;
#pragma clang loop unroll(full)
  for (int i = 0; i < ROWS; i++) x[i] = t->rows[i].x;
  for (size_t n = 0, at = 0; n < t->count; n++, at += t->next_x, vectors += t->next_vectors)
    for (const step *s = t->steps; s < t->end; s++)
#pragma clang loop unroll(full)
      for (int i = 0; i < ROWS; i++)
#pragma clang loop unroll(full)
        for (int v = 0; v < wide; v++)
          acc[i][v] = fma(splat(x[i][at + s->x]), load(vectors + s->vectors + v * LANES), acc[i][v]);
#pragma clang loop unroll(full)
  for (int i = 0; i < ROWS; i++)
#pragma clang loop unroll(full)
    for (int v = 0; v < wide; v++) {
      float *sums = t->rows[i].sums + v * LANES;
      store(sums, load(t->plus ? t->plus + v * LANES : sums) + acc[i][v]);
    }
}

static __attribute__((noinline)) void add_tile(direct_tile *t) {
  t->filled = 0;
  if (t->is_single)
    add_products(t, 1);
  else
    add_products(t, 2);
}

static inline void add_row(direct_tile *t, const float *x, float *sums) {
  t->rows[t->filled++] = (direct_row){x, sums};
  if (t->filled == ROWS) add_tile(t);
}

static void add_last_rows(direct_tile *t) {
  if (!t->filled) return;
  for (size_t i = t->filled; i < ROWS; i++) t->rows[i] = (direct_row){t->rows[0].x, t->rest};
  add_tile(t);
}

static size_t pairs_of(const sizes *n) { return (n->outputs + PAIR - 1) / PAIR; }

// Whether few of the elements of the last vector would be empty.
static int fills_vectors(const sizes *n) {
#if defined __AVX2__ || defined __aarch64__
  return n->kernel_h * n->kernel_w > 1 && 8 * to_lanes(n->outputs) <= 9 * n->outputs;
#else
  (void)n;
  return 0;
#endif
}

// Whether y is computed in this way. Transposed kernels must be worth it, and rows so short that gathering them takes long, or
// the outputs in pairs of vectors: with one, each product waits for an element of x.
static int is_direct(const sizes *n) {
  const size_t points = n->samples * n->out_h * n->out_w, depth = n->channels * n->kernel_h * n->kernel_w;
  return fills_vectors(n) && depth >= 64 && depth * n->outputs <= KERNELS && points >= LEAST_POINTS &&
         2 * points >= n->outputs && (n->outputs > LANES || n->out_w < LANES) &&
         n->out_w * to_lanes(n->outputs) <= SUMS / CORNERS;
}

// Where the parts of scratch memory are, and how much is done at once.
typedef struct {
  size_t samples, rows, channels;      // the first two of y
  float *kernels, *plus, *rest, *sums; // (pairs, window, PAIR); the bias; see direct_tile; (pairs, points, PAIR)
  step *steps;
  size_t floats; // of all
} direct_parts;

// The address after some floats; in integers, as from null it tells how much memory is needed.
static inline float *after(const void *p, size_t floats) { return (float *)((uintptr_t)p + floats * sizeof(float)); }
static inline size_t floats_from(const void *start, const void *end) {
  return ((uintptr_t)end - (uintptr_t)start) / sizeof(float);
}

static __attribute__((noinline)) direct_parts direct_divided(float *scratch, const sizes *n) {
  const size_t taps = n->kernel_h * n->kernel_w, width = pairs_of(n) * PAIR;
  size_t samples = SUMS / (n->out_h * n->out_w * width) / CORNERS * CORNERS;
  samples = smaller(samples > CORNERS ? samples : CORNERS, n->samples);
  const size_t rows = SUMS / (samples * n->out_w * width);
  direct_parts d = {.samples = samples, .rows = smaller(rows ? rows : 1, n->out_h)};
  d.channels = smaller(taps < WINDOW ? WINDOW / taps : 1, n->channels);
  d.kernels = (float *)rounded_up((uintptr_t)scratch, 64);
  d.plus = after(d.kernels, n->channels * taps * width);
  d.rest = after(d.plus, width);
  d.sums = after(d.rest, PAIR);
  d.steps = (step *)after(d.sums, samples * d.rows * n->out_w * width);
  d.floats = 16 + floats_from(d.kernels, d.steps) + taps * sizeof(step) / sizeof(float);
  return d;
}

// Return the positions of window i, or j, that are inside x.
static range taps_inside_h(const sizes *n, size_t i) {
  return inside(i * n->stride_h, n->before_h, n->height, n->dilation_h, n->kernel_h);
}
static range taps_inside_w(const sizes *n, size_t j) {
  return inside(j * n->stride_w, n->before_w, n->width, n->dilation_w, n->kernel_w);
}

static int same(range a, range b) { return a.from == b.from && a.to == b.to; }

// Add the products of `channels` channels for rows `top` to `bottom` of y, and for a pair of vectors of outputs, or one.
static void add_channels(const direct_parts *d, float *sums, const float *x, const float *kernels, const float *plus,
                         size_t samples, size_t channels, size_t top, size_t bottom, int is_single, const sizes *n,
                         int is_flipped) {
  const size_t taps = n->kernel_h * n->kernel_w, image = n->height * n->width;
  direct_tile t = {.steps = d->steps, .count = channels, .next_x = image, .next_vectors = taps * PAIR};
  t.vectors = kernels, t.plus = plus, t.rest = d->rest, t.is_single = is_single;
  for (size_t i = top, i_end; i < bottom; i = i_end) {
    const range h = taps_inside_h(n, i);
    for (i_end = i + 1; i_end < bottom && same(h, taps_inside_h(n, i_end)); i_end++) {}
    for (size_t j = 0, j_end; j < n->out_w; j = j_end) {
      const range w = taps_inside_w(n, j);
      for (j_end = j + 1; j_end < n->out_w && same(w, taps_inside_w(n, j_end)); j_end++) {}
      step *steps = d->steps;
      for (size_t v = h.from; v < h.to; v++)
        for (size_t u = w.from; u < w.to; u++) {
          const size_t tap = v * n->kernel_w + u;
          *steps++ = (step){(v - h.from) * n->dilation_h * n->width + (u - w.from) * n->dilation_w,
                            (is_flipped ? taps - 1 - tap : tap) * PAIR};
        }
      t.end = steps;
      const size_t below = h.from * n->dilation_h - n->before_h, right = w.from * n->dilation_w - n->before_w;
      for (size_t s = 0; s < samples; s++)
        for (size_t r = i; r < i_end; r++) {
          const size_t from = s * n->groups * n->channels * image + (r * n->stride_h + below) * n->width + right;
          float *to = sums + (s * (bottom - top) + r - top) * n->out_w * PAIR;
          // Windows without any element of x begin outside of it, and are not read.
          for (size_t q = j; q < j_end; q++) add_row(&t, after(x, from + q * n->stride_w), to + q * PAIR);
        }
      add_last_rows(&t);
    }
  }
}

// y, or with `is_flipped` kernels in w (channels, outputs, positions) a gradient; for some samples of a group
static void convolve_directly(float *y, const float *x, const float *w, const float *bias, size_t group, range own,
                              const sizes *n, float *scratch, int is_flipped) {
  const direct_parts d = direct_divided(scratch, n);
  const size_t taps = n->kernel_h * n->kernel_w, depth = n->channels * taps, image = n->out_h * n->out_w;
  clear(d.plus, pairs_of(n) * PAIR);
  if (bias) copy_row(d.plus, bias + group * n->outputs, n->outputs);
  if (n->outputs % LANES) clear(d.kernels, pairs_of(n) * depth * PAIR);
  w += group * n->outputs * depth;
  for (size_t c = 0; is_flipped && c < n->channels; c++) { // in the order of memory
    const size_t columns = c + 1 < n->channels ? rounded_up(taps, 4) : taps; // the next channel overwrites what is too much
    for (size_t o = 0; o < n->outputs; o += PAIR)
      transpose(d.kernels + o * depth + c * taps * PAIR, PAIR, w + (c * n->outputs + o) * taps, taps,
                smaller(PAIR, n->outputs - o), columns);
  }
  for (size_t o = 0; !is_flipped && o < n->outputs; o += PAIR)
    transpose(d.kernels + o * depth, PAIR, w + o * depth, depth, smaller(PAIR, n->outputs - o), depth);
  for (size_t sample = own.from; sample < own.to; sample += d.samples)
    for (size_t top = 0; top < n->out_h; top += d.rows) {
      const size_t bottom = smaller(top + d.rows, n->out_h), samples = smaller(d.samples, own.to - sample);
      const size_t first = sample * n->groups + group, area = (bottom - top) * n->out_w;
      for (size_t c = 0; c < n->channels; c += d.channels)
        for (size_t o = 0; o < n->outputs; o += PAIR)
          add_channels(&d, d.sums + o * samples * area, x + (first * n->channels + c) * n->height * n->width,
                       d.kernels + o * depth + c * taps * PAIR, c ? 0 : d.plus + o, samples,
                       smaller(d.channels, n->channels - c), top, bottom, n->outputs - o <= LANES, n, is_flipped);
      for (size_t s = 0; s < samples; s++)
        for (size_t o = 0; o < n->outputs; o += PAIR)
          transpose(y + ((first + s * n->groups) * n->outputs + o) * image + top * n->out_w, image,
                    d.sums + (o * samples + s * PAIR) * area, PAIR, area, smaller(PAIR, n->outputs - o));
    }
}

// Whether the gradient of w is computed in this way, with channels in the rows of a tile.
static int is_direct_dw(const sizes *n) {
  return fills_vectors(n) && n->outputs > LANES && 8 * rounded_up(n->channels, ROWS) <= 9 * n->channels;
}

typedef struct {
  size_t samples, rows, together; // the last: elements of a window whose gradients are computed together
  float *g, *rest, *sums;         // (points, PAIR); see direct_tile; (pairs, together, PAIR)
  step *steps;
  size_t floats; // of all
} direct_dw_parts;

static __attribute__((noinline)) direct_dw_parts direct_dw_divided(float *scratch, const sizes *n) {
  const size_t width = pairs_of(n) * PAIR, depth = n->channels * n->kernel_h * n->kernel_w;
  const size_t rows = smaller(GRADIENTS / n->out_w + 1, n->out_h), samples = GRADIENTS / (rows * n->out_w) + 1;
  direct_dw_parts d = {.samples = smaller(samples, n->samples), .rows = rows, .together = smaller(SUMS / width + 1, depth)};
  d.g = (float *)rounded_up((uintptr_t)scratch, 64);
  d.rest = after(d.g, d.samples * rows * n->out_w * PAIR);
  d.sums = after(d.rest, PAIR);
  d.steps = (step *)after(d.sums, d.together * width);
  d.floats = 16 + floats_from(d.g, d.steps) + rows * n->out_w * sizeof(step) / sizeof(float);
  return d;
}

// Add the products of rows `top` to `bottom` of g for elements `start` to `stop` of a window.
static void add_points(const direct_dw_parts *d, float *sums, const float *x, size_t samples, size_t start, size_t stop,
                       size_t top, size_t bottom, int is_single, const sizes *n) {
  const size_t taps = n->kernel_h * n->kernel_w, image = n->height * n->width;
  direct_tile t = {.steps = d->steps, .count = samples, .next_x = n->groups * n->channels * image};
  t.next_vectors = (bottom - top) * n->out_w * PAIR, t.vectors = d->g, t.rest = d->rest, t.is_single = is_single;
  for (size_t tap = 0; tap < taps; tap++) {
    const size_t below = tap / n->kernel_w * n->dilation_h, right = tap % n->kernel_w * n->dilation_w;
    range h = inside(below, n->before_h, n->height, n->stride_h, n->out_h);
    const range w = inside(right, n->before_w, n->width, n->stride_w, n->out_w);
    if (h.from < top) h.from = top;
    step *steps = d->steps;
    for (size_t i = h.from; i < smaller(h.to, bottom); i++)
      for (size_t j = w.from; j < w.to; j++)
        *steps++ = (step){(i - h.from) * n->stride_h * n->width + (j - w.from) * n->stride_w,
                          ((i - top) * n->out_w + j) * PAIR};
    if (steps == d->steps) continue;
    t.end = steps;
    const float *from = x + ((h.from * n->stride_h + below - n->before_h) * n->width + w.from * n->stride_w + right - n->before_w);
    for (size_t c = start > tap ? (start - tap + taps - 1) / taps : 0; c * taps + tap < stop; c++)
      add_row(&t, from + c * image, sums + (c * taps + tap - start) * PAIR);
    add_last_rows(&t);
  }
}

static void correlate_directly(float *dw, const float *x, const float *g, size_t first, size_t last, const sizes *n,
                               float *scratch) {
  const direct_dw_parts d = direct_dw_divided(scratch, n);
  const size_t image = n->out_h * n->out_w, depth = n->channels * n->kernel_h * n->kernel_w;
  for (size_t group = 0; group < n->groups; group++)
    for (size_t start = first, stop; start < last; start = stop) {
      stop = smaller(start + d.together, last);
      clear(d.rest, PAIR + pairs_of(n) * PAIR * (stop - start));
      for (size_t sample = 0; sample < n->samples; sample += d.samples)
        for (size_t top = 0; top < n->out_h; top += d.rows) {
          const size_t samples = smaller(d.samples, n->samples - sample), bottom = smaller(top + d.rows, n->out_h);
          const size_t one = sample * n->groups + group, area = (bottom - top) * n->out_w;
          for (size_t o = 0; o < n->outputs; o += PAIR) {
            const size_t outputs = smaller(PAIR, n->outputs - o);
            if (outputs % LANES) clear(d.g, samples * area * PAIR);
            for (size_t s = 0; s < samples; s++)
              transpose(d.g + s * area * PAIR, PAIR, g + ((one + s * n->groups) * n->outputs + o) * image + top * n->out_w, image,
                        outputs, area);
            add_points(&d, d.sums + o * (stop - start), x + one * n->channels * n->height * n->width, samples, start, stop, top,
                       bottom, outputs <= LANES, n);
          }
        }
      for (size_t o = 0; o < n->outputs; o += PAIR)
        transpose(dw + (group * n->outputs + o) * depth + start, depth, d.sums + o * (stop - start), PAIR, stop - start,
                  smaller(PAIR, n->outputs - o));
    }
}

#endif
