// tl_attention_f32           y = softmax(q kᵀ · scale) v, causal or not          arXiv:1706.03762 eq. 1
// tl_attention_backward_f32  dq, dk, dv from g, the gradient of y                blocks and recomputation: arXiv:2205.14135
//
//   shape   {heads, kv_heads, t, s, width, value_width}, all ≥ 1; kv_heads divides heads. q (batch, heads, t, width),
//           k (batch, kv_heads, s, width), v (batch, kv_heads, s, value_width), g and y (batch, heads, t, value_width)
//   range   heads of k from `first` to `last`, numbered across the batch, and the heads of q that share them: calls for
//           different ranges write to different memory, and may run concurrently
//   layout  y, dq, dk, dv contiguous; q, k, v, g with any strides (in elements) given as {batch, head, position}, one
//           after the other, elements of a head contiguous
//   stats   (batch, heads, t, 2) contiguous: the maximum of each row of scores, and 1 / Σ exp(score - maximum)
//   causal  query i sees keys 0 to i
//   bias    added to scores, or null; `by_bias` has its strides for {batch, head, query, key}, that of keys 0 or 1. A
//           row that is all -inf gets weights of 0, and so y = 0
//   scratch tl_attention_scratch(shape) floats, contents irrelevant
//   align   none needed       alias   outputs overlap nothing
//   special as softmax: NaN or +inf in the scores of a row makes that row NaN
//   error   y ≤ 4e-6 relative to Σ weight |v| in float64, for |score| < 30 and s ≤ 8192
//
// A block of ROWS queries is multiplied with all the keys that it sees; its ROWS · s scores are stored. Keys and values
// are copied once per head, transposed if they are multiplied along their width, with rows padded by zeros.
#include "product/product.h"

enum { ROWS = 16 };

typedef struct {
  size_t heads, kv_heads, t, s, width, value_width;
} sizes;

typedef struct {
  ptrdiff_t batch, head, position;
} strides;

typedef struct {
  size_t first, rows, keys, columns; // of a block: queries, keys that they see, the same rounded up to whole vectors
} block;

static block block_of(const sizes *n, size_t first, int causal) {
  size_t rows = smaller(ROWS, n->t - first);
  size_t keys = causal ? smaller(first + rows, n->s) : n->s;
  return (block){first, rows, keys, to_lanes(keys)};
}

// dst (rows, columns) = scale · src, rows dst_row apart and padded with zeros
static void copy_rows(float *dst, size_t dst_row, const float *src, ptrdiff_t src_row, size_t rows, size_t columns,
                      float scale) {
  for (; rows--; dst += dst_row, src += src_row) {
    size_t j = 0;
    for (; j + LANES <= columns; j += LANES) store(dst + j, load(src + j) * splat(scale));
    for (; j < columns; j++) dst[j] = src[j] * scale;
    for (; j < to_lanes(columns); j++) dst[j] = 0.0f;
  }
}

// dst (columns, rows) = srcᵀ, likewise
static void copy_transposed(float *dst, size_t dst_row, const float *src, ptrdiff_t src_row, size_t rows, size_t columns) {
  for (size_t j = 0; j < columns; j++, dst += dst_row, src++) {
    for (size_t i = 0; i < rows; i++) dst[i] = src[(ptrdiff_t)i * src_row];
    for (size_t i = rows; i < to_lanes(rows); i++) dst[i] = 0.0f;
  }
}

static size_t seen_by(const block *b, size_t row, int causal) { return causal ? smaller(b->first + row + 1, b->keys) : b->keys; }

static void add_bias(float *p, size_t p_row, const float *bias, const ptrdiff_t *by_bias, const block *b) {
  for (size_t r = 0; r < b->rows; r++, p += p_row) {
    const float *row = bias + (ptrdiff_t)(b->first + r) * by_bias[2];
    size_t j = 0;
    if (by_bias[3])
      for (; j + LANES <= b->keys; j += LANES) store(p + j, load(p + j) + load(row + j));
    for (; j < b->keys; j++) p[j] += row[(ptrdiff_t)j * by_bias[3]];
  }
}

// Return the bias of the first query of a head, numbered across the batch.
static const float *bias_of(const float *bias, const ptrdiff_t *by_bias, const sizes *n, size_t head) {
  return bias ? bias + (ptrdiff_t)(head / n->heads) * by_bias[0] + (ptrdiff_t)(head % n->heads) * by_bias[1] : 0;
}

// Turn a row of scores into exponentials, not divided by their sum; keys that are not seen get 0.
static void exponentials(float *p, size_t seen, size_t columns, float *stats, int may_be_blind) {
  size_t whole = seen / LANES * LANES, rest = seen - whole;
  float highest = largest_of(p, seen);
  int blind = may_be_blind && highest == -__builtin_inff();
  if (blind) highest = 0.0f;
  vf acc = {0}, last = load_part(p + whole, rest, 0.0f);
  for (size_t j = 0; j < whole; j += LANES) {
    vf e = exp_below_1(load(p + j) - splat(highest));
    acc += e;
    store(p + j, e);
  }
  float total = sum(acc);
  if (rest) {
    vf e = exp_below_1(last - splat(highest));
    store_part(p + whole, rest, e);
    for (size_t j = 0; j < rest; j++) total += e[j];
  }
  for (size_t j = seen; j < columns; j++) p[j] = 0.0f;
  stats[0] = highest, stats[1] = blind ? 0.0f : 1.0f / total;
}

// Turn a row of scores into weights, with the stats from `exponentials`.
static void weights(float *p, size_t seen, size_t columns, const float *stats) {
  for (size_t j = 0; j < columns; j += LANES) store(p + j, exp_below_1(load(p + j) - splat(stats[0])) * splat(stats[1]));
  for (size_t j = seen; j < columns; j++) p[j] = 0.0f;
}

EXPORT size_t tl_attention_scratch(const size_t *shape) {
  const sizes *n = (const sizes *)shape;
  size_t width = to_lanes(n->width), value_width = to_lanes(n->value_width);
  return (n->width + n->value_width) * row_of(n->s)   // keys and values, transposed
         + 2 * n->s * (width + value_width)           // keys and values, and their gradients
         + 2 * ROWS * row_of(n->s)                    // weights and the gradients of scores
         + 2 * ROWS * (width + value_width);          // queries and outputs
}

EXPORT void tl_attention_f32(float *y, float *stats, const float *q, const float *k, const float *v,
                             const float *bias, const ptrdiff_t *by_bias, size_t first, size_t last, const size_t *shape,
                             const ptrdiff_t *stride, int causal, float *scratch, float scale) {
  const sizes n = *(const sizes *)shape;
  const strides *by = (const strides *)stride; // of q, k, v
  const size_t group = n.heads / n.kv_heads, width = to_lanes(n.width), value_width = to_lanes(n.value_width);
  const size_t row = row_of(n.s);
  float *keys = scratch, *values = keys + n.width * row, *p = values + n.s * value_width;
  float *queries = p + ROWS * row, *out = queries + ROWS * width;
  for (size_t pair = first; pair < last; pair++) {
    ptrdiff_t batch = (ptrdiff_t)(pair / n.kv_heads), kv_head = (ptrdiff_t)(pair % n.kv_heads);
    copy_transposed(keys, row, k + batch * by[1].batch + kv_head * by[1].head, by[1].position, n.s, n.width);
    copy_rows(values, value_width, v + batch * by[2].batch + kv_head * by[2].head, by[2].position, n.s, n.value_width, 1.0f);
    for (size_t h = 0; h < group; h++) {
      size_t head = pair * group + h; // numbered across the batch
      const float *q_head = q + batch * by[0].batch + (ptrdiff_t)(head % n.heads) * by[0].head;
      for (size_t i = 0; i < n.t; i += ROWS) {
        const block b = block_of(&n, i, causal);
        copy_rows(queries, width, q_head + (ptrdiff_t)i * by[0].position, by[0].position, b.rows, n.width, scale);
        product(p, row, queries, (ptrdiff_t)width, 1, keys, row, b.rows, n.width, b.columns, 0);
        if (bias) add_bias(p, row, bias_of(bias, by_bias, &n, head), by_bias, &b);
        float *found = stats + (head * n.t + i) * 2;
        for (size_t r = 0; r < b.rows; r++)
          exponentials(p + r * row, seen_by(&b, r, causal), b.columns, found + 2 * r, bias != 0);
        product(out, value_width, p, (ptrdiff_t)row, 1, values, value_width, b.rows, b.keys, value_width, 0);
        float *y_block = y + (head * n.t + i) * n.value_width;
        for (size_t r = 0; r < b.rows; r++)
          for (size_t e = 0; e < n.value_width; e++)
            y_block[r * n.value_width + e] = out[r * value_width + e] * found[2 * r + 1];
      }
    }
  }
}

// ds = p ⊙ (dp - Σ p dp), in place of dp
static void softmax_backward(float *dp, const float *p, size_t columns) {
  vf acc = {0};
  for (size_t j = 0; j < columns; j += LANES) acc = fma(load(p + j), load(dp + j), acc);
  vf total = splat(sum(acc));
  for (size_t j = 0; j < columns; j += LANES) store(dp + j, load(p + j) * (load(dp + j) - total));
}

static void copy_out(float *dst, const float *src, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; r++)
    for (size_t j = 0; j < columns; j++) dst[r * columns + j] = src[r * to_lanes(columns) + j];
}

EXPORT void tl_attention_backward_f32(float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
                                      const float *g, const float *stats, const float *bias, const ptrdiff_t *by_bias,
                                      size_t first, size_t last, const size_t *shape, const ptrdiff_t *stride, int causal,
                                      float *scratch, float scale) {
  const sizes n = *(const sizes *)shape;
  const strides *by = (const strides *)stride; // of q, k, v, g
  const size_t group = n.heads / n.kv_heads, width = to_lanes(n.width), value_width = to_lanes(n.value_width);
  const size_t row = row_of(n.s);
  float *keys_t = scratch, *values_t = keys_t + n.width * row, *keys = values_t + n.value_width * row;
  float *d_keys = keys + n.s * width, *d_values = d_keys + n.s * width, *p = d_values + n.s * value_width;
  float *dp = p + ROWS * row, *queries = dp + ROWS * row, *outs = queries + ROWS * width, *d_queries = outs + ROWS * value_width;
  for (size_t pair = first; pair < last; pair++) {
    ptrdiff_t batch = (ptrdiff_t)(pair / n.kv_heads), kv_head = (ptrdiff_t)(pair % n.kv_heads);
    const float *k_head = k + batch * by[1].batch + kv_head * by[1].head;
    copy_transposed(keys_t, row, k_head, by[1].position, n.s, n.width);
    copy_transposed(values_t, row, v + batch * by[2].batch + kv_head * by[2].head, by[2].position, n.s, n.value_width);
    copy_rows(keys, width, k_head, by[1].position, n.s, n.width, scale);
    clear(d_keys, n.s * width);
    clear(d_values, n.s * value_width);
    for (size_t h = 0; h < group; h++) {
      size_t head = pair * group + h;
      const float *q_head = q + batch * by[0].batch + (ptrdiff_t)(head % n.heads) * by[0].head;
      const float *g_head = g + batch * by[3].batch + (ptrdiff_t)(head % n.heads) * by[3].head;
      for (size_t i = 0; i < n.t; i += ROWS) {
        const block b = block_of(&n, i, causal);
        copy_rows(queries, width, q_head + (ptrdiff_t)i * by[0].position, by[0].position, b.rows, n.width, scale);
        copy_rows(outs, value_width, g_head + (ptrdiff_t)i * by[3].position, by[3].position, b.rows, n.value_width, 1.0f);
        product(p, row, queries, (ptrdiff_t)width, 1, keys_t, row, b.rows, n.width, b.columns, 0);
        if (bias) add_bias(p, row, bias_of(bias, by_bias, &n, head), by_bias, &b);
        product(dp, row, outs, (ptrdiff_t)value_width, 1, values_t, row, b.rows, n.value_width, b.columns, 0);
        for (size_t r = 0; r < b.rows; r++) {
          weights(p + r * row, seen_by(&b, r, causal), b.columns, stats + (head * n.t + i + r) * 2);
          softmax_backward(dp + r * row, p + r * row, b.columns);
        }
        product(d_values, value_width, p, 1, (ptrdiff_t)row, outs, value_width, b.keys, b.rows, value_width, 1);
        product(d_keys, width, dp, 1, (ptrdiff_t)row, queries, width, b.keys, b.rows, width, 1);
        product(d_queries, width, dp, (ptrdiff_t)row, 1, keys, width, b.rows, b.keys, width, 0);
        copy_out(dq + (head * n.t + i) * n.width, d_queries, b.rows, n.width);
      }
    }
    copy_out(dk + pair * n.s * n.width, d_keys, n.s, n.width);
    copy_out(dv + pair * n.s * n.value_width, d_values, n.s, n.value_width);
  }
}
