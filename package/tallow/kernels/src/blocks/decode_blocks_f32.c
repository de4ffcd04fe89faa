// Run rows through pre-norm transformer blocks with a key/value cache, and through a last norm. In each block x becomes
//   h = x + Wo attention(rope(Wq n + bq), rope(Wk n + bk), Wv n + bv),  n = rms_norm(x)
//   h + Wdown (silu(Wgate m) * (Wup m)),                                m = rms_norm(h)
// Each head of queries and keys may have a norm before it is rotated, or all heads together. A gated block multiplies what a
// head mixes by σ of a gate. Without hidden features a block is its attention alone. In place of attention a block may have a
// mixer with states; see state_mixer.h.
// A row is one position of one text: `places` says which. All blocks store the keys and values of all rows before any row
// attends, so the rows may be positions of one text that follow each other, or of several texts.
//   layout  x (rows, D); matrices (out, in) row-major contiguous, of floats or of quantised blocks as `formats` says, in the
//           order query, key, value, output, gate, up, down; norms (D,); the last norm may be null for none;
//           query (H·K, D), or (2·H·K, D) if gated: K rows of each head's query, then K of its gate
//           biases (H·K,), (G·K,), (G·K,), and norms of heads (K,), or (H·K,) and (G·K,), each may be null for none; of the
//           output (D,), or null; of gated queries (2·H·K,)
//           cos, sin (> the last position, R / 2), for the first R ≤ K elements of each head; caches (B, G, S, K)
//           contiguous, of floats or int8 as `cache_format` says, to which keys and values are rounded: the places of the
//           rows are written, positions from `start` to that of the row are read; scales (B, G, S) contiguous, for int8
//           places (rows, 3): text < B, position < S, start ≤ position
//   scratch tl_decode_shared(stack, rows) floats for a call, and tl_decode_private(stack, rows) for each concurrent part
//   align   none needed       length  rows ≥ 1
//   alias   nothing overlaps
//   error   as its parts: rms_norm, linear, rotary, attention_decode, silu_mul; with blocks, round_rows and
//           quantized_linear.h; with caches in int8, int8_rows
//
//   threads a call may run on several at once, each with its private scratch: see stages.h. The result does not depend on
//           their number, nor on `chunks`
//
// A block is computed in STAGES stages; the last norm is one more.
#include "blocks/state_mixer.h"

enum { QUERY, KEY, VALUE, OUTPUT, GATE, UP, DOWN, MATRICES };
enum { NORM, PROJECT, STORE, ATTEND, ROUND_MIXED, MIX, NORM_AGAIN, EXPAND, ROUND_GATED, CONTRACT, STAGES };
enum { INT8_ROWS = -1 }; // the format of a cache: int8 with a scale for each head and position

typedef struct {
  void *rows;
  float *scales; // for INT8_ROWS
} head_rows;

typedef struct {
  const float *attention_norm;
  const void *query, *key, *value, *output; // (H·K, D), (G·K, D), (G·K, D), (D, H·K)
  const float *mlp_norm;
  const void *gate, *up, *down; // (F, D), (F, D), (D, F)
  const float *cos, *sin;
  const float *query_bias, *key_bias, *value_bias, *query_norm, *key_norm;
  const float *output_bias;
  head_rows key_cache, value_cache;
  const state_mixer *mixer; // null for attention; else H·K is the number of mixed values
  size_t width, heads, kv_heads, head_width, hidden, positions, rotated; // D, H, G, K, F, S, R
  int32_t formats[MATRICES], interleaved, norms_all, gated, cache_format; // the last FLOAT32, FLOAT16, BFLOAT16 or INT8_ROWS
  float eps;
} decode_block;

typedef struct {
  const decode_block *blocks; // of one width
  const float *norm;
  size_t count;
  float eps;
} decode_stack;

typedef struct {
  float *x;
  const int64_t *places;
  float *scratch;
  size_t rows;
  stages stages;
} decode_call;

static void copy(float *to, const float *from, size_t n) {
#pragma clang loop unroll(disable)
  for (size_t i = 0; i < n; i++) to[i] = from[i];
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t widest(const decode_block *b) { // row of all that are multiplied
  return larger(larger(b->heads * b->head_width, b->width), b->hidden);
}

static size_t shared(const decode_block *b, size_t rows) {
  size_t mixed = b->heads * b->head_width, attention = (b->gated ? 3 : 1) * mixed + 2 * b->kv_heads * b->head_width;
  return rows * (2 * b->width + widest(b) + larger(mixed + (b->mixer ? mixer_row(b->mixer) : attention), 2 * b->hidden));
}

EXPORT size_t tl_decode_shared(const decode_stack *stack, size_t rows) {
  size_t most = 0;
  for (size_t i = 0; i < stack->count; i++) most = larger(most, shared(stack->blocks + i, rows));
  return most;
}

EXPORT size_t tl_decode_private(const decode_stack *stack, size_t rows) {
  size_t most = 0;
  for (size_t i = 0; i < stack->count; i++) {
    const decode_block *b = stack->blocks + i;
    size_t widened = b->cache_format == FLOAT32 ? 0 : 2 * b->head_width;
    const size_t lengths[] = {(b->heads / b->kv_heads + widened) * b->positions, tl_linear_panels_scratch(rows, b->width, FLOAT16),
                              tl_linear_panels_scratch(rows, b->heads * b->head_width, FLOAT16),
                              tl_linear_panels_scratch(rows, b->hidden, FLOAT16)};
    for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) most = larger(most, lengths[j]);
  }
  return most;
}

// Write a row of n elements, the `row`th of a cache.
static void write_head(const head_rows *cache, int32_t format, size_t row, const float *x, size_t n) {
  if (format == INT8_ROWS) {
    tl_round_int8_rows((int8_t *)cache->rows + row * n, cache->scales + row, x, 1, n);
    return;
  }
  if (format == FLOAT32)
    for (size_t i = 0; i < n; i++) ((float *)cache->rows)[row * n + i] = x[i];
  else
    tl_narrow_f32((uint16_t *)cache->rows + row * n, x, n, format);
}

// Return rows of a cache as floats, which are written to `widened` unless they are in the cache.
static const float *read_heads(const head_rows *cache, int32_t format, size_t row, float *widened, size_t rows, size_t n) {
  size_t at = row * n;
  if (format == FLOAT32) return (const float *)cache->rows + at;
  if (format == INT8_ROWS)
    tl_widen_int8_rows(widened, (const int8_t *)cache->rows + at, cache->scales + row, rows, n);
  else
    (format == FLOAT16 ? tl_widen_f16 : tl_widen_bf16)(widened, (const uint16_t *)cache->rows + at, rows * n);
  return widened;
}

// Rotate the heads of a row.
static void rotate(const decode_block *b, float *x, size_t heads, size_t position) {
  const float *cos = b->cos + position * (b->rotated / 2), *sin = b->sin + position * (b->rotated / 2);
  for (size_t i = 0; i < heads; i++, x += b->head_width) tl_rotary_f32(x, x, cos, sin, 1, 1, b->rotated, b->interleaved);
}

// Normalize and rotate the query and the key of a row, and write the key and the value to the caches.
static void store_row(const decode_block *b, const int64_t *place, float *query, float *key, const float *value) {
  size_t k = b->head_width, position = (size_t)place[1];
  size_t h = b->heads, g = b->kv_heads, all = b->norms_all;
  if (b->query_norm) tl_rms_norm_f32(query, query, b->query_norm, all ? 1 : h, all ? h * k : k, b->eps);
  if (b->key_norm) tl_rms_norm_f32(key, key, b->key_norm, all ? 1 : g, all ? g * k : k, b->eps);
  rotate(b, query, h, position);
  rotate(b, key, g, position);
  for (size_t i = 0; i < g; i++) {
    size_t row = ((size_t)place[0] * g + i) * b->positions + position;
    write_head(&b->key_cache, b->cache_format, row, key + i * k, k);
    write_head(&b->value_cache, b->cache_format, row, value + i * k, k);
  }
}

// Unit r · G + g: the query heads of row r that share the key/value head g.
static void attend(const decode_block *b, const int64_t *places, float *mixed, const float *query, const float *gates,
                   const part *p) {
  size_t g = b->kv_heads, k = b->head_width, group = b->heads / g, units = p->rows * g;
  const ptrdiff_t stride[3] = {0, 0, (ptrdiff_t)k};
  for (size_t u = first_of(units, p); u < last_of(units, p); u++) {
    const int64_t *place = places + u / g * 3;
    size_t start = (size_t)place[2], seen = (size_t)place[1] + 1 - start;
    size_t row = ((size_t)place[0] * g + u % g) * b->positions + start;
    float *widened = p->scratch + group * b->positions;
    const float *keys = read_heads(&b->key_cache, b->cache_format, row, widened, seen, k);
    const float *values = read_heads(&b->value_cache, b->cache_format, row, widened + b->positions * k, seen, k);
    tl_attention_decode_f32(mixed + u * group * k, query + u * group * k, keys, values, 1, group, 1, seen, k, stride, stride,
                            p->scratch, 1.0f / __builtin_sqrtf((float)k));
    for (size_t h = u * group; b->gated && h < (u + 1) * group; h++) times_sigmoid(mixed + h * k, gates + (2 * h + 1) * k, k);
  }
}

static int projects_blocks(const decode_block *b) {
  if (b->mixer) return multiplies_blocks(b->mixer);
  return b->formats[QUERY] > BFLOAT16 || b->formats[KEY] > BFLOAT16 || b->formats[VALUE] > BFLOAT16;
}

static void run_stage(const decode_block *b, const decode_call *c, uint32_t stage, part p) {
  size_t d = b->width, k = b->head_width, hk = b->heads * k, gk = b->kv_heads * k, f = b->hidden, rows = c->rows;
  float *normed = c->scratch, *branch = normed + rows * d, *rounded_rows = branch + rows * d;
  float *work = rounded_rows + rows * widest(b);
  float *mixed = work, *inputs = mixed + rows * hk; // of the mixer, or the projected queries
  float *query = inputs, *key = query + rows * hk, *value = key + rows * gk, *gated = value + rows * gk;
  float *gate = work, *up = gate + rows * f;
  const int32_t *formats = b->formats;
  // A rounded row takes less than k floats.
  unsigned char *rounded = (unsigned char *)rounded_rows;
  p.rounded = rounded;
  p.rows = rows;
  if (stage > MIX && !f) return;
  switch (stage) {
  case NORM:
    tl_rms_norm_f32(normed, c->x, b->attention_norm, rows, d, b->eps);
    if (projects_blocks(b)) tl_round_rows_f32(rounded, normed, rows, d);
    break;
  case PROJECT:
    if (b->mixer) {
      project(b->mixer, inputs, normed, d, &p);
      break;
    }
    times(b->gated ? gated : query, normed, (affine){b->query, b->query_bias, formats[QUERY]}, d, b->gated ? 2 * hk : hk, &p);
    times(key, normed, (affine){b->key, b->key_bias, formats[KEY]}, d, gk, &p);
    times(value, normed, (affine){b->value, b->value_bias, formats[VALUE]}, d, gk, &p);
    break;
  case STORE:
    for (size_t r = 0; b->mixer && r < rows; r++) convolve(b->mixer, c->places + r * 3, inputs, mixed, r, rows);
    if (b->mixer) break;
    for (size_t h = 0; b->gated && h < rows * b->heads; h++) copy(query + h * k, gated + 2 * h * k, k);
    for (size_t r = 0; r < rows; r++) store_row(b, c->places + r * 3, query + r * hk, key + r * gk, value + r * gk);
    break;
  case ATTEND:
    if (b->mixer)
      apply_rule(b->mixer, c->places, inputs, mixed, b->eps, &p);
    else
      attend(b, c->places, mixed, query, gated, &p);
    break;
  case ROUND_MIXED:
    if (formats[OUTPUT] > BFLOAT16) tl_round_rows_f32(rounded, mixed, rows, hk);
    break;
  case MIX:
    times(branch, mixed, (affine){b->output, b->output_bias, formats[OUTPUT]}, hk, d, &p);
    add(c->x, branch, d, &p);
    break;
  case NORM_AGAIN:
    tl_rms_norm_f32(normed, c->x, b->mlp_norm, rows, d, b->eps);
    if (formats[GATE] > BFLOAT16 || formats[UP] > BFLOAT16) tl_round_rows_f32(rounded, normed, rows, d);
    break;
  case EXPAND: {
    size_t first = first_column(f, &p), columns = last_column(f, &p) - first;
    times(gate, normed, (affine){b->gate, 0, formats[GATE]}, d, f, &p);
    times(up, normed, (affine){b->up, 0, formats[UP]}, d, f, &p);
    for (size_t i = first; i < rows * f; i += f) tl_silu_mul_f32(gate + i, gate + i, up + i, columns);
    break;
  }
  case ROUND_GATED:
    if (formats[DOWN] > BFLOAT16) tl_round_rows_f32(rounded, gate, rows, f);
    break;
  case CONTRACT:
    times(branch, gate, (affine){b->down, 0, formats[DOWN]}, f, d, &p);
    add(c->x, branch, d, &p);
  }
}

static void run(const void *blocks, const void *call, uint32_t number, part p) {
  const decode_stack *stack = blocks;
  const decode_call *c = call;
  size_t block = number / STAGES;
  if (block < stack->count)
    run_stage(stack->blocks + block, c, number % STAGES, p);
  else if (stack->norm)
    tl_rms_norm_f32(c->x, c->x, stack->norm, c->rows, stack->blocks->width, stack->eps);
}

EXPORT void tl_decode_blocks_f32(const decode_stack *stack, decode_call *c, float *scratch) {
  run_stages(&c->stages, (uint32_t)stack->count * STAGES + 1, run, stack, c, scratch);
}
