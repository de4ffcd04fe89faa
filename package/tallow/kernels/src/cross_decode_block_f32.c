// Run one token of each row through one pre-norm decoder block with self-attention and cross-attention to a sound:
//   h = x + Wo attention(Wq n, Wk n, Wv n) + bo,          n = layer_norm(x)
//   c = h + Wco attention(Wcq m + bcq, sound) + bco,      m = layer_norm(h)
//   x becomes c + Wdown gelu(Wup l + bup) + bdown,        l = layer_norm(c)
//   layout  x (rows, D); matrices (out, in) row-major contiguous, of floats or of quantised blocks as the `format` of each
//           says; norms and biases (out,), each may be null for ones and zeros
//           keys, values (rows, H, S, K) contiguous: position `position` of each head is written, earlier ones are read
//           cross_keys, cross_values (sounds, H, N, K) contiguous: rows / sounds consecutive rows share a sound
//   scratch tl_cross_decode_block_scratch(block, call) floats, contents irrelevant
//   align   none needed       length  position < S; D = H·K; sounds divides rows
//   alias   nothing overlaps
//   error   as its parts: layer_norm, linear, attention_decode, gelu; with blocks, round_rows and quantized_linear.h
#include "kernels.h"

typedef struct {
  affine self_norm, query, key, value, output; // (D,), then (D, D)
  affine cross_norm, cross_query, cross_output;
  affine mlp_norm, up, down; // (D,), (F, D), (D, F)
  size_t width, heads, hidden; // D, H, F
  float eps;
} cross_decode_block;

typedef struct {
  float *x, *keys, *values;
  const float *cross_keys, *cross_values;
  size_t rows, sounds, positions, heard, position; // and S, N
} cross_decode_call;

EXPORT size_t tl_cross_decode_block_scratch(const cross_decode_block *b, const cross_decode_call *c) {
  size_t inner = 4 * b->width > b->hidden ? 4 * b->width : b->hidden;
  size_t shared = c->rows / c->sounds * c->heard;
  size_t longest = b->width > b->hidden ? b->width : b->hidden; // of the rows that are rounded
  return c->rows * (2 * b->width + inner + longest) + (shared > c->positions ? shared : c->positions);
}

static void normalize(float *y, const float *x, affine norm, const cross_decode_block *b, size_t rows) {
  tl_layer_norm_f32(y, x, norm.weight, norm.bias, rows, b->width, b->eps);
}

static void times(float *y, const float *x, affine w, float *rounded, size_t rows, size_t k, size_t n) {
  linear_of_any(y, x, w.weight, w.bias, w.format, rounded, rows, k, n);
}

static void add(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] += y[i];
}

static void copy(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i];
}

// (rows, H, K) -> the row `position` of (rows, H, S, K)
static void remember(float *cache, const float *heads, const cross_decode_call *c, size_t all_heads, size_t k) {
  for (size_t i = 0; i < all_heads; i++) copy(cache + (i * c->positions + c->position) * k, heads + i * k, k);
}

// (sounds, first, second, K) -> (sounds, second, first, K)
static void swap(float *y, const float *x, size_t sounds, size_t first, size_t second, size_t k) {
  for (; sounds--; x += first * second * k)
    for (size_t j = 0; j < second; j++)
      for (size_t i = 0; i < first; i++, y += k) copy(y, x + (i * second + j) * k, k);
}

EXPORT void tl_cross_decode_block_f32(const cross_decode_block *b, const cross_decode_call *c, float *scratch) {
  size_t d = b->width, h = b->heads, k = d / h, f = b->hidden, rows = c->rows, group = rows / c->sounds;
  float scale = 1.0f / __builtin_sqrtf((float)k);
  float *x = c->x, *normed = scratch, *branch = normed + rows * d, *work = branch + rows * d;
  float *rounded = work + rows * (4 * d > f ? 4 * d : f), *scores = rounded + rows * (d > f ? d : f);

  float *query = work, *mixed = query + rows * d, *key = mixed + rows * d, *value = key + rows * d;
  const ptrdiff_t own[3] = {(ptrdiff_t)(h * c->positions * k), (ptrdiff_t)(c->positions * k), (ptrdiff_t)k};
  normalize(normed, x, b->self_norm, b, rows);
  times(query, normed, b->query, rounded, rows, d, d);
  times(key, normed, b->key, rounded, rows, d, d);
  times(value, normed, b->value, rounded, rows, d, d);
  remember(c->keys, key, c, rows * h, k);
  remember(c->values, value, c, rows * h, k);
  tl_attention_decode_f32(mixed, query, c->keys, c->values, rows, h, h, c->position + 1, k, own, own, scale, scores);
  times(branch, mixed, b->output, rounded, rows, d, d);
  add(x, branch, rows * d);

  const ptrdiff_t cross[3] = {(ptrdiff_t)(h * c->heard * k), (ptrdiff_t)(c->heard * k), (ptrdiff_t)k};
  normalize(normed, x, b->cross_norm, b, rows);
  times(mixed, normed, b->cross_query, rounded, rows, d, d);
  swap(query, mixed, c->sounds, group, h, k); // rows that share keys, in the order of heads that share keys
  tl_attention_decode_f32(query, query, c->cross_keys, c->cross_values, c->sounds, h * group, h, c->heard, k, cross, cross,
                          scale, scores);
  swap(mixed, query, c->sounds, h, group, k);
  times(branch, mixed, b->cross_output, rounded, rows, d, d);
  add(x, branch, rows * d);

  float *inner = work;
  normalize(normed, x, b->mlp_norm, b, rows);
  times(inner, normed, b->up, rounded, rows, d, f);
  tl_gelu_f32(inner, inner, rows * f);
  times(branch, inner, b->down, rounded, rows, f, d);
  add(x, branch, rows * d);
}
