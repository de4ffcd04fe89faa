// tl_depthwise_f32     as tl_convolution_f32 with a group per channel: y[n, c, o, i] = bias[c, o] + Σ w[c, o, k] x[n, c, ...]
// tl_depthwise_dx_f32  the gradient of x from g, the gradient of y
// tl_depthwise_dw_f32  the gradient of w
//
//   shape   as in convolution_f32.c, with 1 channel per group
//   range   channels of samples, or for dw channels, from `first` to `last`: calls for different ranges write to
//           different memory, and may run concurrently
//   layout  all contiguous      align  none needed      alias  outputs overlap nothing
//   scratch tl_depthwise_scratch(shape) floats, contents irrelevant
//   special NaN and infinities spread over the whole channel of a sample
//   error   ≤ (K / 4 + 8) ulp of the sum of the magnitudes of the K products
//
// A channel of x is first copied with zero padding (planes.h).
#include "planes.h"

enum { ROWS = 8 }; // rows of y processed per position, which stay in L1

static size_t taps_of(const sizes *n) { return n->kernel_h * n->kernel_w; }

EXPORT size_t tl_depthwise_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const plane p = plane_of(n);
  return p.rows * p.row + n->out_h * p.width + taps_of(n) * (sizeof(size_t) / sizeof(float)) + 2;
}

// Return the offset in the copy of each position of the first window.
static size_t *place_taps(float *scratch, const sizes *n, const plane *p) {
  size_t *at = (size_t *)(((uintptr_t)scratch + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t));
  for (size_t h = 0; h < n->kernel_h; h++)
    for (size_t w = 0; w < n->kernel_w; w++) at[h * n->kernel_w + w] = place_of(n, p, h, w);
  return at;
}

// Copy back to x; elements that no window read get 0.
static void copy_out(float *x, const float *copy, const sizes *n, const plane *p) {
  const size_t step = n->stride_w;
  for (size_t r = n->before_h; r < n->before_h + n->height; r++, x += n->width) {
    if (step > 1 || r >= p->rows || n->before_w + n->width > p->column_row) clear(x, n->width);
    if (r >= p->rows) continue;
    for (size_t s = 0; s < step; s++) {
      size_t column;
      range met = met_by(s, n, p, &column);
      const float *in = copy + r * p->row + s * p->column_row;
      float *out = x + column;
      if (step == 1)
        copy_row(out, in + met.from, met.to - met.from);
      else
        for (size_t j = met.from; j < met.to; j++, out += step) *out = in[j];
    }
  }
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
  vf acc[4];
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) acc[i] = splat(bias);
  for (size_t t = 0; t < taps; t++)
#pragma clang loop unroll(full)
    for (int i = 0; i < rows; i++) acc[i] = fma(splat(w[t]), load(x + at[t] + (size_t)i * x_row), acc[i]);
#pragma clang loop unroll(full)
  for (int i = 0; i < rows; i++) store(y + (size_t)i * y_row, acc[i]);
}

EXPORT void tl_depthwise_f32(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                             const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
  const plane p = plane_of(n);
  const size_t taps = taps_of(n), x_row = n->stride_h * p.row;
  const int is_short = n->out_w < LANES; // then a row of y has no room for a vector
  float *copy = scratch, *out = copy + p.rows * p.row;
  const size_t *at = place_taps(out + n->out_h * p.width, n, &p);
  for (size_t one = first; one < last; one++) {
    copy_in(copy, x + one * n->height * n->width, n->width, n, &p);
    for (size_t o = 0; o < n->outputs; o++) {
      size_t kernel = one % n->groups * n->outputs + o, pitch = is_short ? p.width : n->out_w;
      float *image = y + (one * n->outputs + o) * n->out_h * n->out_w, *to = is_short ? out : image;
      const float *own = w + kernel * taps, plus = bias ? bias[kernel] : 0.0f;
      for (size_t j = 0; j < n->out_w; j += LANES) {
        size_t column = is_short ? 0 : smaller(j, n->out_w - LANES), i = 0; // the last vector may overlap the previous one
        for (; i + 4 <= n->out_h; i += 4) meet(to + i * pitch + column, pitch, copy + i * x_row + column, x_row, at, own, taps, plus, 4);
        for (; i < n->out_h; i++) meet(to + i * pitch + column, pitch, copy + i * x_row + column, x_row, at, own, taps, plus, 1);
      }
      for (size_t i = 0; is_short && i < n->out_h; i++) copy_row(image + i * n->out_w, out + i * pitch, n->out_w);
    }
  }
}

EXPORT void tl_depthwise_dx_f32(float *dx, const float *g, const float *w, size_t first, size_t last, const size_t *shape,
                                float *scratch) {
  const sizes *n = (const sizes *)shape;
  const plane p = plane_of(n);
  const size_t taps = taps_of(n);
  float *copy = scratch, *in = copy + p.rows * p.row;
  const size_t *at = place_taps(in + n->out_h * p.width, n, &p);
  for (size_t one = first; one < last; one++) {
    clear(copy, p.rows * p.row);
    for (size_t o = 0; o < n->outputs; o++) {
      const float *kernel = w + (one % n->groups * n->outputs + o) * taps;
      copy_gradient(in, g + (one * n->outputs + o) * n->out_h * n->out_w, n, &p);
      for (size_t top = 0; top < n->out_h; top += ROWS)
        for (size_t t = 0; t < taps; t++)
          for (size_t i = top; i < smaller(top + ROWS, n->out_h); i++) {
            const float *row = in + i * p.width;
            float *met = copy + i * n->stride_h * p.row + at[t];
            for (size_t j = 0; j < p.width; j += LANES) store(met + j, fma(splat(kernel[t]), load(row + j), load(met + j)));
          }
    }
    copy_out(dx + one * n->height * n->width, copy, n, &p);
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
