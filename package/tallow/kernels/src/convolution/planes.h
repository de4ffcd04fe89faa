// Copies of one channel of an image with zero padding, for convolutions: windows have no edge cases, and elements that
// adjacent windows read at one position are adjacent for any stride, because the columns of a copy are sorted by their
// remainder modulo the stride.

#ifndef TALLOW_PLANES_H
#define TALLOW_PLANES_H

#include "convolution/convolution.h"

typedef struct {
  size_t rows, column_row, row; // of the copy: its rows; the distances between remainders, and between rows
  size_t width;                 // of a row of windows, rounded up to whole vectors
} plane;

static inline plane plane_of(const sizes *n) {
  plane p = {.width = to_lanes(n->out_w)};
  p.rows = (n->out_h - 1) * n->stride_h + (n->kernel_h - 1) * n->dilation_h + 1;
  p.column_row = p.width + (n->kernel_w - 1) * n->dilation_w / n->stride_w;
  p.row = p.column_row * n->stride_w;
  return p;
}

// Return the offset in the copy of a position of the first window. The window of row i, column j is
// i · stride_h · row + j further.
static inline size_t place_of(const sizes *n, const plane *p, size_t h, size_t w) {
  size_t right = w * n->dilation_w, below = h * n->dilation_h * p->row;
  if (n->stride_w == 1) return below + right; // two divisions take longer than to copy a short row
  return below + right % n->stride_w * p->column_row + right / n->stride_w;
}

// Every element of a vector, or every second one of 2 · LANES - 1: nothing after the last of them is read.
static inline vf load_every(size_t step, const float *p) {
  if (step == 1) return load(p);
  vf low = load(p), high = load(p + LANES - 1);
#if LANES == 16
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
#elif LANES == 8
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(low, high, 0, 2, 5, 7);
#endif
}

#if HAS_MASKS
#define COPY inline
// dst[j] = src[j · step]
static inline __attribute__((always_inline)) void copy_every(size_t step, float *dst, const float *src, size_t n) {
  for (; n >= LANES; n -= LANES, dst += LANES, src += LANES * step) store(dst, load_every(step, src));
  if (!n) return;
  vf v = load_part(src, smaller(step * (n - 1) + 1, LANES), 0.0f);
  if (step == 2) {
    vf high = load_part(src + LANES - 1, n > LANES / 2 ? 2 * n - LANES : 0, 0.0f);
    v = __builtin_shufflevector(v, high, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  }
  store_part(dst, n, v);
}
#else
#define COPY __attribute__((noinline))
static inline quad quad_of_every(size_t step, const float *p) {
  quad low = *(const quad *)p;
  return step == 1 ? low : (quad)__builtin_shufflevector(low, *(const quad *)(p + 3), 0, 2, 5, 7);
}

// dst[j] = src[j · step]. The last vector, or quad, may overlap the previous one, because rows are short.
static inline __attribute__((always_inline)) void copy_every(size_t step, float *dst, const float *src, size_t n) {
  size_t j = 0;
  if (n >= LANES) {
    for (; j + LANES <= n; j += LANES) store(dst + j, load_every(step, src + j * step));
    store(dst + n - LANES, load_every(step, src + (n - LANES) * step));
  } else if (n >= 4) {
    for (; j + 4 <= n; j += 4) *(quad *)(dst + j) = quad_of_every(step, src + j * step);
    *(quad *)(dst + n - 4) = quad_of_every(step, src + (n - 4) * step);
  } else
    for (; j < n; j++) dst[j] = src[j * step];
}

#endif

static COPY void copy_row(float *dst, const float *src, size_t n) { copy_every(1, dst, src, n); }
static COPY void copy_second(float *dst, const float *src, size_t n) { copy_every(2, dst, src, n); }

// Return the columns of remainder `s` that are inside the image, and the column of the image of the first of them.
static inline range columns_inside(size_t s, const sizes *n, const plane *p, size_t *column) {
  range columns = inside(s, n->before_w, n->width, n->stride_w, p->column_row);
  *column = columns.from * n->stride_w + s - n->before_w;
  return columns;
}

// Copy a channel of an image, with rows x_row apart; the zeros around it are there already.
static __attribute__((noinline)) void copy_in(float *copy, const float *x, size_t x_row, const sizes *n, const plane *p) {
  const size_t step = n->stride_w, end = smaller(p->rows, n->before_h + n->height);
  for (size_t s = 0; s < step; s++) {
    size_t column;
    range columns = columns_inside(s, n, p, &column);
    const float *in = x + column;
    float *out = copy + s * p->column_row + columns.from;
    for (size_t r = n->before_h; columns.from < columns.to && r < end; r++, in += x_row) {
      if (step == 1)
        copy_row(out + r * p->row, in, columns.to - columns.from);
      else if (step == 2)
        copy_second(out + r * p->row, in, columns.to - columns.from);
      else
        for (size_t j = 0; j < columns.to - columns.from; j++) out[r * p->row + j] = in[j * step];
    }
  }
}

#endif
