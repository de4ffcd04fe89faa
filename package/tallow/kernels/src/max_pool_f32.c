// tl_max_pool_f32           y[p, i, j] = the maximum of a window of plane p of x
// tl_max_pool_backward_f32  dx from g, the gradient of y: each of its elements goes to the first maximum of its window
//   shape   see `sizes`; x and dx (planes, height, width), y and g (planes, out_h, out_w); what lies outside of x counts as
//           -inf, and is never the maximum of a window
//   range   planes from `first` to `last`: calls for different ranges may run at the same time
//   layout  all contiguous      align  none needed      alias  what is written overlaps nothing
//   scratch out_w floats, contents irrelevant (backward)
//   special NaN in a window makes y NaN; its gradient then goes nowhere
//   error   y is exact; dx ≤ 1 ulp for each window that an element is the maximum of
#include "windows.h"

typedef struct {
  size_t height, width, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, before_h, before_w, out_h, out_w;
} sizes;

// Where one place of a row of windows meets a plane: at x + offset + j * stride_w, for j in `columns`.
typedef struct {
  ptrdiff_t offset;
  range columns;
} meeting;

static meeting meet(const sizes *n, size_t i, size_t k_h, size_t k_w) {
  ptrdiff_t row = element_at(i, k_h * n->dilation_h, n->before_h, n->height, n->stride_h);
  if (row < 0) return (meeting){0, {0, 0}};
  ptrdiff_t offset = row * (ptrdiff_t)n->width + (ptrdiff_t)(k_w * n->dilation_w) - (ptrdiff_t)n->before_w;
  return (meeting){offset, inside(k_w * n->dilation_w, n->before_w, n->width, n->stride_w, n->out_w)};
}

static void maxima(float *y, const float *x, const sizes *n, size_t i) {
  for (size_t j = 0; j < n->out_w; j++) y[j] = -__builtin_inff();
  for (size_t k = 0; k < n->kernel_h; k++)
    for (size_t l = 0; l < n->kernel_w; l++) {
      const meeting at = meet(n, i, k, l);
      for (size_t j = at.columns.from; j < at.columns.to; j++) {
        float v = x[at.offset + (ptrdiff_t)(j * n->stride_w)];
        y[j] = v > y[j] || v != v ? v : y[j];
      }
    }
}

EXPORT void tl_max_pool_f32(float *y, const float *x, size_t first, size_t last, const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  for (size_t p = first; p < last; p++)
    for (size_t i = 0; i < n->out_h; i++) maxima(y + (p * n->out_h + i) * n->out_w, x + p * n->height * n->width, n, i);
}

// One place of LANES windows: where x there is their maximum, g goes to dx, and the maximum becomes NaN, which equals nothing
// that comes later. A branch for each window would be mispredicted every other time.
static inline void give(float *dx, float *highest, const float *g, const float *x, size_t step) {
  vf met, all = load(highest);
#pragma clang loop unroll(full)
  for (size_t l = 0; l < LANES; l++) met[l] = x[l * step];
  vi hit = met == all;
  vf given = (vf)(hit & (vi)load(g));
  store(highest, (vf)(hit | (vi)all));
#pragma clang loop unroll(full)
  for (size_t l = 0; l < LANES; l++) dx[l * step] += given[l];
}

EXPORT void tl_max_pool_backward_f32(float *dx, const float *g, const float *x, size_t first, size_t last,
                                     const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t plane = n->height * n->width;
  g += first * n->out_h * n->out_w, x += first * plane, dx += first * plane;
  for (size_t p = first; p < last; p++, x += plane, dx += plane) {
    for (size_t i = 0; i < plane; i++) dx[i] = 0.0f;
    for (size_t i = 0; i < n->out_h; i++, g += n->out_w) {
      maxima(scratch, x, n, i);
      for (size_t k = 0; k < n->kernel_h; k++)
        for (size_t l = 0; l < n->kernel_w; l++) {
          const meeting at = meet(n, i, k, l);
          const float *met = x + at.offset;
          float *target = dx + at.offset;
          size_t j = at.columns.from, step = n->stride_w;
          for (; j + LANES <= at.columns.to; j += LANES) give(target + j * step, scratch + j, g + j, met + j * step, step);
          for (; j < at.columns.to; j++)
            if (met[j * step] == scratch[j]) {
              target[j * step] += g[j];
              scratch[j] = __builtin_nanf("");
            }
        }
    }
  }
}
