// Run packed texts through a post-norm transformer block, as in BERT: x becomes
//   layer_norm(h + Wdown act(Wup h + bup) + bdown),   h = layer_norm(x + Wo attention(Wq x + bq, Wk x + bk, Wv x + bv) + bo)
// in three steps, each for a part of the work, so that parts may run concurrently, or all blocks at once:
//   tl_encoder_project   query, key and value of the panels `first` to `last` of all `rows`
//   tl_encoder_attend    for the (text, head) pairs `first` to `last`; query becomes the output of attention
//   tl_encoder_finish    x of the panels `first` to `last`
//   tl_encoder_blocks    all steps of `count` blocks for all of `texts`
// before them tl_to_panels converts rows to panels, and after all blocks tl_from_panels converts back: see panels.h
//
//   layout  x, query, key, value (panels, D, PANEL); rows of text i from offsets[i] to offsets[i + 1]; elements beyond
//           the last row are undefined
//           matrices (out, in) row-major contiguous, of float32 or of quantised blocks as the `format` of each says; norms
//           and biases (out,), each may be null for ones and zeros
//   seen    (rows,) or null: nonzero for rows that are seen as keys; a text without any gets 0 from attention
//   scratch tl_encoder_scratch(block, longest) floats per step, contents irrelevant; `longest` is the length of
//           the longest text
//   align   none needed       length  D = H·K; any number of rows
//   alias   nothing overlaps
//   rows    the result of a text depends neither on the others nor on the parts: the same bits with any number of threads
//   error   as its parts: linear sums k in order, up to 384 at a time; attention, gelu; the mean of layer_norm is
//           summed in order, ≤ D ulp of Σ|x| / D; with blocks, round_rows and quantized_linear.h
#include "elementwise/gelu.h"
#include "runtime/kernels.h"
#include "product/panels.h"
#include "product/product.h"

enum { GELU, GELU_TANH, RELU };
enum { QUERIES = 4 * LANES }; // whose scores stay in L2
// Rows whose hidden features stay in L2; not fewer where w is unpacked for each group.
enum { GROUP_ROWS = 4 * PANEL, QUANTISED_ROWS = 128 };

typedef struct {
  affine query, key, value, output; // (D, D)
  affine attention_norm;            // (D,)
  affine up, down;                  // (F, D), (D, F)
  affine output_norm;               // (D,)
  size_t width, heads, hidden;      // D, H, F
  int32_t activation;
  float eps;
} encoder_block;

EXPORT size_t tl_encoder_panel(void) { return PANEL; }

// The rows to compute at a time.
static size_t group_rows(const encoder_block *b) {
  int32_t formats = b->query.format | b->key.format | b->value.format | b->output.format | b->up.format | b->down.format;
  return formats == FLOAT32 ? GROUP_ROWS : QUANTISED_ROWS;
}

EXPORT size_t tl_encoder_scratch(const encoder_block *b, size_t longest) {
  size_t attending = 2 * (b->width / b->heads) * (row_of(longest) + QUERIES) + (longest + 1) * QUERIES;
  size_t wider = b->width > b->hidden ? b->width : b->hidden;
  size_t finishing = group_rows(b) * (b->width + b->hidden + 2 * wider);
  return attending > finishing ? attending : finishing;
}

EXPORT __attribute__((noinline)) void tl_to_panels(float *y, const float *x, size_t rows, size_t width) {
  to_panels(y, x, rows, width);
}

EXPORT __attribute__((noinline)) void tl_from_panels(float *y, const float *x, size_t rows, size_t width) {
  from_panels(y, width, x, rows, width);
}

// Rows of a group for products with quantised matrices: not in panels.
typedef struct {
  unsigned char *rounded;
  float *flat;
} rows_of_group;

static rows_of_group rows_at(float *scratch, const encoder_block *b) {
  size_t wider = b->width > b->hidden ? b->width : b->hidden;
  return (rows_of_group){(unsigned char *)(scratch + group_rows(b) * wider), scratch};
}

static __attribute__((noinline)) void round_panels(rows_of_group g, const float *x, size_t rows, size_t k) {
  tl_from_panels(g.flat, x, rows, k);
  tl_round_rows_f32(g.rounded, g.flat, rows, k);
}

// y = x @ wᵀ + bias of a group. A quantised w takes the rounded rows of x instead.
static __attribute__((noinline)) void times(float *y, const float *x, affine w, rows_of_group g, size_t rows, size_t k,
                                            size_t n) {
  if (w.format == FLOAT32) {
    panel_product(y, x, w.weight, (ptrdiff_t)k, w.bias, rows, k, n, 0);
    return;
  }
  linear_of_blocks(g.flat, g.rounded, w.weight, w.bias, w.format, rows, k, n);
  tl_to_panels(y, g.flat, rows, n);
}

EXPORT void tl_encoder_project(const encoder_block *b, float *query, float *key, float *value, const float *x, size_t rows,
                               size_t first, size_t last, float *scratch) {
  size_t d = b->width, end = smaller(rows, last * PANEL), step = group_rows(b);
  rows_of_group g = rows_at(scratch, b);
  for (size_t r = first * PANEL; r < end; r += step) {
    size_t at = r * d, count = smaller(step, end - r);
    if ((b->query.format | b->key.format | b->value.format) != FLOAT32) round_panels(g, x + at, count, d);
    times(query + at, x + at, b->query, g, count, d, d);
    times(key + at, x + at, b->key, g, count, d, d);
    times(value + at, x + at, b->value, g, count, d, d);
  }
}

static int all_seen(const uint8_t *seen, size_t first, size_t count) {
  for (size_t r = first; seen && r < first + count; r++)
    if (!seen[r]) return 0;
  return 1;
}

// dst (features, seen rows) = scale · src, rows dst_row apart and padded with zeros. src is the first feature to copy
// of the first panel, `width` features wide. Returns the number of seen rows.
static size_t gather(float *dst, size_t dst_row, const float *src, size_t width, size_t features, size_t first, size_t last,
                     const uint8_t *seen, float scale) {
  size_t n = 0;
  for (size_t r = first, count; r < last; r += count) {
    size_t lane = r % PANEL;
    const float *panel = src + r / PANEL * width * PANEL + lane;
    count = smaller(PANEL - lane, last - r);
    if (count == PANEL && all_seen(seen, r, count)) {
      for (size_t f = 0; f < features; f++)
        for (size_t v = 0; v < PANEL; v += LANES)
          store(dst + f * dst_row + n + v, load(panel + f * PANEL + v) * splat(scale));
      n += count;
      continue;
    }
    for (size_t i = 0; i < count; i++)
      if (!seen || seen[r + i]) {
        for (size_t f = 0; f < features; f++) dst[f * dst_row + n] = panel[f * PANEL + i] * scale;
        n++;
      }
  }
  for (size_t f = 0; f < features; f++)
    for (size_t i = n; i < to_lanes(n); i++) dst[f * dst_row + i] = 0.0f;
  return n;
}

// Copy `count` rows back, each multiplied by its scale.
static void scatter(float *dst, const float *src, size_t src_row, size_t width, size_t features, size_t first, size_t last,
                    const float *scale) {
  for (size_t r = first, count; r < last; r += count, src += count, scale += count) {
    size_t lane = r % PANEL;
    float *panel = dst + r / PANEL * width * PANEL + lane;
    count = smaller(PANEL - lane, last - r);
    if (count == PANEL)
      for (size_t f = 0; f < features; f++)
        for (size_t v = 0; v < PANEL; v += LANES)
          store(panel + f * PANEL + v, load(src + f * src_row + v) * load(scale + v));
    else
      for (size_t f = 0; f < features; f++)
        for (size_t i = 0; i < count; i++) panel[f * PANEL + i] = src[f * src_row + i] * scale[i];
  }
}

// Turn columns of scores (keys, QUERIES) into exponentials, whose sum is 1 / inverse.
static void exponentials(float *p, size_t keys, size_t queries, float *inverse) {
  for (size_t j = 0; j < queries; j += LANES) {
    vf top = splat(-__builtin_inff()), total = {0};
    for (size_t i = 0; i < keys; i++) top = max(load(p + i * QUERIES + j), top);
    for (size_t i = 0; i < keys; i++) {
      vf e = exp_below_1(load(p + i * QUERIES + j) - top);
      total += e;
      store(p + i * QUERIES + j, e);
    }
    store(inverse + j, keys ? splat(1.0f) / total : splat(0.0f));
  }
}

EXPORT void tl_encoder_attend(const encoder_block *b, float *query, const float *key, const float *value,
                              const size_t *offsets, size_t longest, const uint8_t *seen, size_t first, size_t last,
                              float *scratch) {
  const size_t d = b->width, k = d / b->heads, row = row_of(longest);
  float *keys = scratch, *values = keys + k * row, *queries = values + k * row, *mixed = queries + k * QUERIES;
  float *inverse = mixed + k * QUERIES, *scores = inverse + QUERIES;
  const float scale = 1.0f / __builtin_sqrtf((float)k);
  for (size_t pair = first; pair < last; pair++) {
    size_t text = pair / b->heads, head = pair % b->heads * k * PANEL, start = offsets[text], end = offsets[text + 1];
    size_t s = gather(keys, row, key + head, d, k, start, end, seen, 1.0f);
    gather(values, row, value + head, d, k, start, end, seen, 1.0f);
    for (size_t t = start; t < end; t += QUERIES) {
      size_t until = smaller(t + QUERIES, end), columns = to_lanes(until - t);
      gather(queries, QUERIES, query + head, d, k, t, until, 0, scale);
      product(scores, QUERIES, keys, 1, (ptrdiff_t)row, queries, QUERIES, s, k, columns, 0);
      exponentials(scores, s, columns, inverse);
      product(mixed, QUERIES, values, (ptrdiff_t)row, 1, scores, QUERIES, k, s, columns, 0);
      scatter(query + head, mixed, QUERIES, d, k, t, until, inverse);
    }
  }
}

// x = layer_norm(x + branch), both of the first `rows` rows of one panel
static void add_and_normalize(float *x, const float *branch, affine norm, size_t rows, size_t width, float eps) {
  const float *weight = norm.weight, *bias = norm.bias;
  for (size_t v = 0; v < smaller(rows, PANEL); v += LANES) {
    vf total = {0}, squares = {0};
    for (size_t i = v; i < width * PANEL; i += PANEL) {
      vf both = load(x + i) + load(branch + i);
      store(x + i, both);
      total += both;
    }
    vf mean = total / splat((float)width);
    for (size_t i = v; i < width * PANEL; i += PANEL) {
      vf far = load(x + i) - mean;
      squares = fma(far, far, squares);
    }
    vf deviation = squares / splat((float)width) + splat(eps), scale;
    for (size_t i = 0; i < LANES; i++) scale[i] = 1.0f / __builtin_sqrtf(deviation[i]);
    for (size_t f = 0; f < width; f++) {
      vf normal = (load(x + f * PANEL + v) - mean) * scale;
      if (weight) normal *= splat(weight[f]);
      if (bias) normal += splat(bias[f]);
      store(x + f * PANEL + v, normal);
    }
  }
}

static void apply_gelu(float *y, size_t n) {
  for (size_t i = 0; i < n; i += LANES) store(y + i, gelu(load(y + i)));
}

static void apply_gelu_tanh(float *y, size_t n) {
  for (size_t i = 0; i < n; i += LANES) store(y + i, gelu_tanh(load(y + i)));
}

static void apply_relu(float *y, size_t n) {
  for (size_t i = 0; i < n; i += LANES) {
    vf x = load(y + i);
    store(y + i, select(x < splat(0.0f), splat(0.0f), x));
  }
}

// branch = the feed-forward part of a group. Between two quantised matrices rows need no panels.
static void feed_forward(const encoder_block *b, float *branch, const float *x, float *inner, rows_of_group g, size_t rows) {
  size_t d = b->width, f = b->hidden;
  void (*activate)(float *y, size_t n) =
      b->activation == RELU ? apply_relu : b->activation == GELU_TANH ? apply_gelu_tanh : apply_gelu;
  if (b->up.format == FLOAT32) {
    panel_product(inner, x, b->up.weight, (ptrdiff_t)d, b->up.bias, rows, d, f, activate);
    if (b->down.format != FLOAT32) round_panels(g, inner, rows, f);
  } else {
    round_panels(g, x, rows, d);
    linear_of_blocks(g.flat, g.rounded, b->up.weight, b->up.bias, b->up.format, rows, d, f);
    activate(g.flat, rows * f);
    if (b->down.format == FLOAT32)
      tl_to_panels(inner, g.flat, rows, f);
    else
      tl_round_rows_f32(g.rounded, g.flat, rows, f);
  }
  times(branch, inner, b->down, g, rows, f, d);
}

EXPORT void tl_encoder_finish(const encoder_block *b, float *x, const float *mixed, size_t rows, size_t first, size_t last,
                              float *scratch) {
  size_t d = b->width, end = smaller(rows, last * PANEL), step = group_rows(b);
  float *branch = scratch, *inner = branch + step * d;
  rows_of_group g = rows_at(inner + step * b->hidden, b);
  for (size_t r = first * PANEL; r < end; r += step) {
    size_t count = smaller(step, end - r);
    float *group = x + r * d;
    if (b->output.format != FLOAT32) round_panels(g, mixed + r * d, count, d);
    times(branch, mixed + r * d, b->output, g, count, d, d);
    for (size_t i = 0; i < count; i += PANEL) add_and_normalize(group + i * d, branch + i * d, b->attention_norm, count - i, d, b->eps);
    feed_forward(b, branch, group, inner, g, count);
    for (size_t i = 0; i < count; i += PANEL) add_and_normalize(group + i * d, branch + i * d, b->output_norm, count - i, d, b->eps);
  }
}

EXPORT void tl_encoder_blocks(const encoder_block *const *blocks, size_t count, float *x, float *query, float *key,
                              float *value, size_t rows, const size_t *offsets, size_t texts, size_t longest,
                              const uint8_t *seen, float *scratch) {
  size_t panels = rounded_up(rows, PANEL) / PANEL;
  for (size_t i = 0; i < count; i++) {
    tl_encoder_project(blocks[i], query, key, value, x, rows, 0, panels, scratch);
    tl_encoder_attend(blocks[i], query, key, value, offsets, longest, seen, 0, texts * blocks[i]->heads, scratch);
    tl_encoder_finish(blocks[i], x, query, rows, 0, panels, scratch);
  }
}
