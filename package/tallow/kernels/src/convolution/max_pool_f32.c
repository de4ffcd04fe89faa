// tl_max_pool_f32           y[p, i, j] = the maximum of a window of plane p of x, and its index in the plane
// tl_max_pool_backward_f32  dx from g, the gradient of y: each element is added at its index
//   shape   see `sizes`; x and dx (planes, height, width), y, places and g (planes, out_h, out_w); height · width < 2^31.
//           Elements outside of x count as -inf and are never the maximum; of equal maxima the first counts
//   range   planes from `first` to `last`: calls for different ranges may run concurrently
//   layout  all contiguous      align  none needed      alias  outputs overlap nothing
//   special NaN in a window makes y NaN, with the index -1. A gradient with an index outside the plane is ignored
//   error   y is exact; dx ≤ 1 ulp per window whose maximum an element is
#include "convolution/windows.h"

typedef struct {
  size_t height, width, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, before_h, before_w, out_h, out_w;
} sizes;

// The elements of a plane at one position of a row of windows: offset + j * stride_w, for j in `columns`.
typedef struct {
  ptrdiff_t offset;
  range columns;
} window_row;

static window_row window_row_at(const sizes *n, size_t i, size_t k_h, size_t k_w) {
  ptrdiff_t row = element_at(i, k_h * n->dilation_h, n->before_h, n->height, n->stride_h);
  if (row < 0) return (window_row){0, {0, 0}};
  ptrdiff_t offset = row * (ptrdiff_t)n->width + (ptrdiff_t)(k_w * n->dilation_w) - (ptrdiff_t)n->before_w;
  return (window_row){offset, inside(k_w * n->dilation_w, n->before_w, n->width, n->stride_w, n->out_w)};
}

static void maxima(float *restrict y, const float *restrict x, const sizes *n, size_t i) {
  for (size_t j = 0; j < n->out_w; j++) y[j] = -__builtin_inff();
  for (size_t k = 0; k < n->kernel_h; k++)
    for (size_t l = 0; l < n->kernel_w; l++) {
      const window_row at = window_row_at(n, i, k, l);
      for (size_t j = at.columns.from; j < at.columns.to; j++) {
        float v = x[at.offset + (ptrdiff_t)(j * n->stride_w)];
        y[j] = v > y[j] || v != v ? v : y[j];
      }
    }
}

// From the last position of the windows to the first, so that the first of equal maxima is kept.
static void find(int32_t *restrict places, const float *restrict y, const float *restrict x, const sizes *n, size_t i) {
  for (size_t j = 0; j < n->out_w; j++) places[j] = -1;
  for (size_t k = n->kernel_h; k-- > 0;)
    for (size_t l = n->kernel_w; l-- > 0;) {
      const window_row row = window_row_at(n, i, k, l);
      for (size_t j = row.columns.from; j < row.columns.to; j++) {
        int32_t at = (int32_t)(row.offset + (ptrdiff_t)(j * n->stride_w));
        int32_t hit = -(int32_t)(x[at] == y[j]);
        places[j] = (at & hit) | (places[j] & ~hit); // a branch would be mispredicted
      }
    }
}

typedef float four __attribute__((vector_size(16), aligned(4)));
typedef int32_t four_ints __attribute__((vector_size(16), aligned(4)));

// Return whether windows are 2 x 2, side by side, inside the plane, and at least four in a row: then one pass finds maxima
// and places.
static int are_squares(const sizes *n) {
  return n->kernel_h == 2 && n->kernel_w == 2 && n->stride_h == 2 && n->stride_w == 2 && n->dilation_h == 1 &&
         n->dilation_w == 1 && !n->before_h && !n->before_w && 2 * n->out_h <= n->height && 2 * n->out_w <= n->width &&
         n->out_w >= 4;
}

static inline four larger(four a, four b) {
  four_ints is_b = b > a;
  return (four)(((four_ints)b & is_b) | ((four_ints)a & ~is_b));
}

#define AT(p) (*(const four *)(p))
static void of_squares(float *y, int32_t *places, const float *x, const sizes *n, size_t i) {
  const int32_t row = (int32_t)n->width, start = 2 * (int32_t)i * row;
  const float *top = x + start, *bottom = top + row;
  for (size_t k = 0; k < n->out_w; k += 4) {
    const size_t j = smaller(k, n->out_w - 4); // the last four may overlap those before
    const four a = __builtin_shufflevector(AT(top + 2 * j), AT(top + 2 * j + 4), 0, 2, 4, 6);
    const four b = __builtin_shufflevector(AT(top + 2 * j), AT(top + 2 * j + 4), 1, 3, 5, 7);
    const four c = __builtin_shufflevector(AT(bottom + 2 * j), AT(bottom + 2 * j + 4), 0, 2, 4, 6);
    const four d = __builtin_shufflevector(AT(bottom + 2 * j), AT(bottom + 2 * j + 4), 1, 3, 5, 7);
    const four largest = larger(larger(a, b), larger(c, d));
    const four_ints is_nan = (a != a) | (b != b) | (c != c) | (d != d), is_b = b == largest;
    four_ints at = row - (c != largest); // a comparison is -1 where it holds
    at = ((at & ~is_b) | (1 & is_b)) & ~(a == largest);
    *(four_ints *)(places + j) = (at + (start + 2 * (int32_t)j) + (four_ints){0, 2, 4, 6}) | is_nan;
    *(four *)(y + j) = (four)((four_ints)largest | is_nan);
  }
}
#undef AT

EXPORT void tl_max_pool_f32(float *y, int32_t *places, const float *x, size_t first, size_t last, const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  const int squares = are_squares(n);
  for (size_t p = first; p < last; p++)
    for (size_t i = 0; i < n->out_h; i++) {
      size_t row = (p * n->out_h + i) * n->out_w;
      const float *plane = x + p * n->height * n->width;
      if (squares) {
        of_squares(y + row, places + row, plane, n, i);
        continue;
      }
      maxima(y + row, plane, n, i);
      find(places + row, y + row, plane, n, i);
    }
}

EXPORT void tl_max_pool_backward_f32(float *dx, const float *g, const int32_t *places, size_t first, size_t last,
                                     size_t plane, size_t windows) {
  for (size_t p = first; p < last; p++) {
    float *to = dx + p * plane;
    for (size_t i = 0; i < plane; i++) to[i] = 0.0f;
    for (size_t i = p * windows; i < (p + 1) * windows; i++)
      if ((uint32_t)places[i] < plane) to[places[i]] += g[i];
  }
}
