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
// The windows of a tile of y are gathered into the columns of a matrix that is small enough to stay in L2.
#include "convolution.h"
#include "product.h"

enum { TILE = 32768, LEAST = 32 }; // floats of a matrix of columns; its fewest columns, if a row of y has as many

typedef struct {
  size_t top, bottom, left, right, area; // positions of y: whole rows, or a part of one row
} box;

static size_t depth_of(const sizes *n) { return n->channels * n->kernel_h * n->kernel_w; }
static size_t parts_of(size_t n, size_t size) { return (n + size - 1) / size; }

// Return the first tile; no tile is larger.
static box first_tile(const sizes *n) {
  size_t fit = TILE / depth_of(n), rows = 1, columns = n->out_w;
  if (fit < LEAST) fit = LEAST;
  if (fit < n->out_w)
    columns = fit;
  else
    rows = smaller(fit / n->out_w, n->out_h);
  return (box){0, rows, 0, columns, rows * columns};
}

static size_t tiles_of(const sizes *n) {
  box one = first_tile(n);
  return parts_of(n->out_h, one.bottom) * parts_of(n->out_w, one.right);
}

static box tile_at(const sizes *n, size_t index) {
  box one = first_tile(n);
  size_t across = parts_of(n->out_w, one.right), top = index / across * one.bottom, left = index % across * one.right;
  size_t bottom = smaller(top + one.bottom, n->out_h), right = smaller(left + one.right, n->out_w);
  return (box){top, bottom, left, right, (bottom - top) * (right - left)};
}

EXPORT size_t tl_convolution_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  size_t row = row_of(first_tile(n).area), depth = depth_of(n);
  return depth * row                               // columns
         + to_lanes(n->outputs) * (row + depth);   // a tile of y or g, and the gradient of w, transposed
}

// A row of the matrix of columns: one position in the windows, and the columns of y for which it is inside
// the width of x.
typedef struct {
  size_t channel, down, right;
  range columns;
} place;

static place place_at(const sizes *n, size_t index, const box *b) {
  size_t k_w = index % n->kernel_w, k_h = index / n->kernel_w % n->kernel_h, right = k_w * n->dilation_w;
  range all = inside(right, n->before_w, n->width, n->stride_w, n->out_w);
  size_t from = all.from < b->left ? b->left : smaller(all.from, b->right);
  size_t to = all.to < from ? from : smaller(all.to, b->right);
  return (place){index / n->kernel_w / n->kernel_h, k_h * n->dilation_h, right, {from, to}};
}

// Return the offset in x of the first element that row i of y reads at a position; -1 if the row of x is outside.
static ptrdiff_t meeting(const sizes *n, const place *p, size_t i) {
  ptrdiff_t row = element_at(i, p->down, n->before_h, n->height, n->stride_h);
  if (row < 0 || p->columns.from == p->columns.to) return -1;
  return ((ptrdiff_t)(p->channel * n->height) + row) * (ptrdiff_t)n->width
         + (ptrdiff_t)(p->columns.from * n->stride_w + p->right) - (ptrdiff_t)n->before_w;
}

// Fill rows `first` to `last` of the matrix of columns of a tile, `row` apart, padded with zeros.
static void gather(float *columns, size_t row, const float *x, const sizes *n, const box *b, size_t first, size_t last) {
  const size_t step = n->stride_w, width = b->right - b->left;
  for (size_t r = first; r < last; r++, columns += row) {
    const place p = place_at(n, r, b);
    float *out = columns;
    for (size_t i = b->top; i < b->bottom; i++, out += width) {
      ptrdiff_t at = meeting(n, &p, i);
      if (at < 0) {
        clear(out, width);
        continue;
      }
      const float *source = x + at;
      float *met = out + (p.columns.from - b->left);
      size_t count = p.columns.to - p.columns.from, j = 0;
      clear(out, p.columns.from - b->left);
      if (step == 1)
        for (; j + LANES <= count; j += LANES) store(met + j, load(source + j));
      for (; j < count; j++) met[j] = source[j * step];
      clear(met + count, b->right - p.columns.to);
    }
    clear(columns + b->area, to_lanes(b->area) - b->area);
  }
}

// The adjoint of gather: add all rows of the matrix of columns to their source.
static void scatter(float *x, const float *columns, size_t row, const sizes *n, const box *b) {
  const size_t step = n->stride_w, width = b->right - b->left, depth = depth_of(n);
  for (size_t r = 0; r < depth; r++, columns += row) {
    const place p = place_at(n, r, b);
    const float *in = columns + (p.columns.from - b->left);
    for (size_t i = b->top; i < b->bottom; i++, in += width) {
      ptrdiff_t at = meeting(n, &p, i);
      if (at < 0) continue;
      float *target = x + at;
      size_t count = p.columns.to - p.columns.from, j = 0;
      if (step == 1)
        for (; j + LANES <= count; j += LANES) store(target + j, load(target + j) + load(in + j));
      for (; j < count; j++) target[j * step] += in[j];
    }
  }
}

EXPORT void tl_convolution_f32(float *y, const float *x, const float *w, const float *bias, size_t first, size_t last,
                               const size_t *shape, float *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t depth = depth_of(n), row = row_of(first_tile(n).area), tiles = tiles_of(n), image = n->out_h * n->out_w;
  float *columns = scratch, *out = columns + depth * row;
  for (size_t one = first; one < last; one++) {
    size_t group = one % n->groups;
    for (size_t t = 0; t < tiles; t++) {
      const box b = tile_at(n, t);
      gather(columns, row, x + one * n->channels * n->height * n->width, n, &b, 0, depth);
      product(out, row, w + group * n->outputs * depth, (ptrdiff_t)depth, 1, columns, row, n->outputs, depth,
              to_lanes(b.area), 0);
      for (size_t o = 0; o < n->outputs; o++) {
        float *y_row = y + (one * n->outputs + o) * image + b.top * n->out_w + b.left;
        float plus = bias ? bias[group * n->outputs + o] : 0.0f;
        for (size_t i = 0; i < b.area; i++) y_row[i] = out[o * row + i] + plus;
      }
    }
  }
}

EXPORT void tl_convolution_dx_f32(float *dx, const float *g, const float *w, size_t first, size_t last, const size_t *shape,
                                  float *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t depth = depth_of(n), row = row_of(first_tile(n).area), tiles = tiles_of(n), image = n->out_h * n->out_w;
  const size_t pixels = n->channels * n->height * n->width;
  float *columns = scratch, *in = columns + depth * row;
  for (size_t one = first; one < last; one++) {
    clear(dx + one * pixels, pixels);
    for (size_t t = 0; t < tiles; t++) {
      const box b = tile_at(n, t);
      for (size_t o = 0; o < n->outputs; o++) {
        const float *g_row = g + (one * n->outputs + o) * image + b.top * n->out_w + b.left;
        for (size_t i = 0; i < b.area; i++) in[o * row + i] = g_row[i];
        clear(in + o * row + b.area, to_lanes(b.area) - b.area);
      }
      product(columns, row, w + one % n->groups * n->outputs * depth, 1, (ptrdiff_t)depth, in, row, depth, n->outputs,
              to_lanes(b.area), 0);
      scatter(dx + one * pixels, columns, row, n, &b);
    }
  }
}

EXPORT void tl_convolution_dw_f32(float *dw, const float *x, const float *g, size_t first, size_t last, const size_t *shape,
                                  float *scratch) {
  const sizes *n = (const sizes *)shape;
  const size_t depth = depth_of(n), row = row_of(first_tile(n).area), tiles = tiles_of(n), image = n->out_h * n->out_w;
  const size_t outputs = to_lanes(n->outputs), rows = last - first;
  float *columns = scratch, *in = columns + depth * row, *total = in + outputs * row;
  for (size_t group = 0; group < n->groups; group++) {
    clear(total, rows * outputs);
    for (size_t one = group; one < n->samples * n->groups; one += n->groups)
      for (size_t t = 0; t < tiles; t++) {
        const box b = tile_at(n, t);
        for (size_t o = 0; o < outputs; o++) {
          const float *g_row = g + (one * n->outputs + o) * image + b.top * n->out_w + b.left;
          for (size_t i = 0; i < b.area; i++) in[i * outputs + o] = o < n->outputs ? g_row[i] : 0.0f;
        }
        gather(columns, row, x + one * n->channels * n->height * n->width, n, &b, first, last);
        product(total, outputs, columns, (ptrdiff_t)row, 1, in, outputs, rows, b.area, outputs, 1);
      }
    for (size_t o = 0; o < n->outputs; o++)
      for (size_t r = 0; r < rows; r++) dw[(group * n->outputs + o) * depth + first + r] = total[r * outputs + o];
  }
}
