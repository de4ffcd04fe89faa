// Run one token of each row through one pre-norm decoder block with self-attention and cross-attention to a sound:
//   h = x + Wo attention(Wq n, Wk n, Wv n) + bo,          n = layer_norm(x)
//   c = h + Wco attention(Wcq m + bcq, sound) + bco,      m = layer_norm(h)
//   x becomes c + Wdown gelu(Wup l + bup) + bdown,        l = layer_norm(c)
//   layout  x (rows, D); matrices (out, in) row-major contiguous, of floats or of quantised blocks as the `format` of each
//           says; norms and biases (out,), each may be null for ones and zeros
//           keys, values (rows, H, S, K) contiguous: position `position` of each head is written, earlier ones are read
//           cross_keys, cross_values (sounds, H, N, K) contiguous: rows / sounds consecutive rows share a sound
//   scratch tl_cross_decode_shared(block, call) floats for a call, and tl_cross_decode_private(block, call) for each
//           concurrent part
//   align   none needed       length  position < S; D = H·K; sounds divides rows
//   alias   nothing overlaps
//   error   as its parts: layer_norm, linear, attention_decode, gelu; with blocks, round_rows and quantized_linear.h
//
//   threads a call may run on several at once, each with its private scratch: see stages.h. The result does not depend on
//           their number, nor on `chunks`
#include "blocks/stages.h"

enum {
  NORM, PROJECT, STORE, ATTEND, ROUND_MIXED, MIX,
  CROSS_NORM, CROSS_QUERY, BY_HEAD, CROSS_ATTEND, BY_ROW, CROSS_MIX,
  MLP_NORM, EXPAND, ROUND_INNER, CONTRACT, STAGES
};

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
  float *scratch;
  stages stages;
} cross_decode_call;

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t inner(const cross_decode_block *b) { return larger(4 * b->width, b->hidden); }

EXPORT size_t tl_cross_decode_shared(const cross_decode_block *b, const cross_decode_call *c) {
  size_t rounded = larger(b->width, b->hidden); // a rounded row takes less
  return c->rows * (2 * b->width + inner(b) + rounded);
}

EXPORT size_t tl_cross_decode_private(const cross_decode_block *b, const cross_decode_call *c) {
  size_t scores = larger(c->rows / c->sounds * c->heard, c->positions);
  return larger(scores, larger(tl_linear_panels_scratch(c->rows, b->width, FLOAT16),
                               tl_linear_panels_scratch(c->rows, b->hidden, FLOAT16)));
}

static void normalize(float *y, const float *x, affine norm, const cross_decode_block *b, size_t rows) {
  tl_layer_norm_f32(y, x, norm.weight, norm.bias, rows, b->width, b->eps);
}

static void round_for(affine w, unsigned char *rounded, const float *x, size_t rows, size_t k) {
  if (w.format > BFLOAT16) tl_round_rows_f32(rounded, x, rows, k);
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

// Some of `units` heads of keys and values, of which each serves `group` queries. The heads are `apart` floats apart.
static void attend(float *mixed, const float *query, const float *keys, const float *values, size_t units, size_t group,
                   size_t seen, size_t apart, size_t k, const part *p) {
  size_t first = first_of(units, p), count = last_of(units, p) - first;
  const ptrdiff_t stride[3] = {0, (ptrdiff_t)apart, (ptrdiff_t)k};
  if (!count) return; // more chunks than heads
  tl_attention_decode_f32(mixed + first * group * k, query + first * group * k, keys + first * apart, values + first * apart,
                          1, count * group, count, seen, k, stride, stride, p->scratch, 1.0f / __builtin_sqrtf((float)k));
}

static void run(const void *blocks, const void *call, uint32_t stage, part p) {
  const cross_decode_block *b = blocks;
  const cross_decode_call *c = call;
  size_t d = b->width, h = b->heads, k = d / h, f = b->hidden, rows = c->rows, group = rows / c->sounds;
  float *x = c->x, *normed = c->scratch, *branch = normed + rows * d, *work = branch + rows * d;
  float *query = work, *mixed = query + rows * d, *key = mixed + rows * d, *value = key + rows * d;
  unsigned char *rounded = (unsigned char *)(work + rows * inner(b));
  p.rows = rows, p.rounded = rounded;
  switch (stage) {
  case NORM:
    normalize(normed, x, b->self_norm, b, rows);
    if (b->query.format > BFLOAT16 || b->key.format > BFLOAT16 || b->value.format > BFLOAT16)
      tl_round_rows_f32(rounded, normed, rows, d);
    break;
  case PROJECT:
    times(query, normed, b->query, d, d, &p);
    times(key, normed, b->key, d, d, &p);
    times(value, normed, b->value, d, d, &p);
    break;
  case STORE:
    remember(c->keys, key, c, rows * h, k);
    remember(c->values, value, c, rows * h, k);
    break;
  case ATTEND:
    attend(mixed, query, c->keys, c->values, rows * h, 1, c->position + 1, c->positions * k, k, &p);
    break;
  case ROUND_MIXED:
    round_for(b->output, rounded, mixed, rows, d);
    break;
  case MIX:
    times(branch, mixed, b->output, d, d, &p);
    add(x, branch, d, &p);
    break;
  case CROSS_NORM:
    normalize(normed, x, b->cross_norm, b, rows);
    round_for(b->cross_query, rounded, normed, rows, d);
    break;
  case CROSS_QUERY:
    times(mixed, normed, b->cross_query, d, d, &p);
    break;
  case BY_HEAD: // rows that share keys, in the order of heads that share keys
    swap(query, mixed, c->sounds, group, h, k);
    break;
  case CROSS_ATTEND:
    attend(query, query, c->cross_keys, c->cross_values, c->sounds * h, group, c->heard, c->heard * k, k, &p);
    break;
  case BY_ROW:
    swap(mixed, query, c->sounds, h, group, k);
    round_for(b->cross_output, rounded, mixed, rows, d);
    break;
  case CROSS_MIX:
    times(branch, mixed, b->cross_output, d, d, &p);
    add(x, branch, d, &p);
    break;
  case MLP_NORM:
    normalize(normed, x, b->mlp_norm, b, rows);
    round_for(b->up, rounded, normed, rows, d);
    break;
  case EXPAND: {
    size_t first = first_column(f, &p), columns = last_column(f, &p) - first;
    times(work, normed, b->up, d, f, &p);
    for (size_t i = first; i < rows * f; i += f) tl_gelu_f32(work + i, work + i, columns);
    break;
  }
  case ROUND_INNER:
    round_for(b->down, rounded, work, rows, f);
    break;
  case CONTRACT:
    times(branch, work, b->down, f, d, &p);
    add(x, branch, d, &p);
  }
}

EXPORT void tl_cross_decode_block_f32(const cross_decode_block *b, cross_decode_call *c, float *scratch) {
  run_stages(&c->stages, STAGES, run, b, c, scratch);
}
