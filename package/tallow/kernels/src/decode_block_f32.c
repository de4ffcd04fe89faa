// One token through one pre-norm transformer block with a key/value cache: x becomes
//   h = x + Wo attention(rope(Wq n), rope(Wk n), Wv n),  n = rms_norm(x)
//   h + Wdown (silu(Wgate m) * (Wup m)),                 m = rms_norm(h)
//   layout  x (D,); matrices (out, in) row-major contiguous, float32, or float16 or bfloat16 as `weights` says; norms (D,)
//           cos, sin (> position, K / 2); caches (G, S, K) contiguous: row `position` of each head is written, rows before
//           it are read
//   scratch tl_decode_block_scratch(block) floats, contents irrelevant
//   align   none needed       length  position < S
//   alias   nothing overlaps
//   error   that of its parts: rms_norm, linear, rotary, attention_decode, silu_mul
#include "kernels.h"

enum { FLOAT32, FLOAT16, BFLOAT16 };

typedef struct {
  const float *attention_norm;
  const void *query, *key, *value, *output; // (H·K, D), (G·K, D), (G·K, D), (D, H·K)
  const float *mlp_norm;
  const void *gate, *up, *down; // (F, D), (F, D), (D, F)
  const float *cos, *sin;
  float *key_cache, *value_cache, *scratch;
  size_t width, heads, kv_heads, head_width, hidden, positions; // D, H, G, K, F, S
  int32_t weights, interleaved;
  float eps;
} decode_block;

EXPORT size_t tl_decode_block_scratch(size_t width, size_t heads, size_t kv_heads, size_t head_width, size_t hidden,
                                      size_t positions) {
  size_t attention = (2 * heads + 2 * kv_heads) * head_width + heads / kv_heads * positions;
  return 2 * width + (attention > 2 * hidden ? attention : 2 * hidden);
}

static void times(float *y, const float *x, const void *w, const decode_block *b, size_t k, size_t n) {
  if (b->weights == FLOAT32) tl_linear_f32(y, x, w, 0, 1, k, n, (ptrdiff_t)k, n);
  if (b->weights == FLOAT16) tl_linear_f16(y, x, w, 0, 1, k, n, (ptrdiff_t)k, n);
  if (b->weights == BFLOAT16) tl_linear_bf16(y, x, w, 0, 1, k, n, (ptrdiff_t)k, n);
}

static void add(float *x, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] += y[i];
}

static void remember(float *cache, const float *heads, const decode_block *b, size_t position) {
  for (size_t g = 0; g < b->kv_heads; g++)
    for (size_t i = 0; i < b->head_width; i++)
      cache[(g * b->positions + position) * b->head_width + i] = heads[g * b->head_width + i];
}

EXPORT void tl_decode_block_f32(const decode_block *b, float *x, size_t position) {
  size_t d = b->width, h = b->heads, g = b->kv_heads, k = b->head_width, f = b->hidden, s = position + 1;
  const float *cos = b->cos + position * (k / 2), *sin = b->sin + position * (k / 2);
  const ptrdiff_t stride[3] = {0, (ptrdiff_t)(b->positions * k), (ptrdiff_t)k};
  float *normed = b->scratch, *branch = normed + d, *work = branch + d;

  float *query = work, *mixed = query + h * k, *key = mixed + h * k, *value = key + g * k, *scores = value + g * k;
  tl_rms_norm_f32(normed, x, b->attention_norm, 1, d, b->eps);
  times(query, normed, b->query, b, d, h * k);
  times(key, normed, b->key, b, d, g * k);
  times(value, normed, b->value, b, d, g * k);
  tl_rotary_f32(query, query, cos, sin, h, 1, k, b->interleaved);
  tl_rotary_f32(key, key, cos, sin, g, 1, k, b->interleaved);
  remember(b->key_cache, key, b, position);
  remember(b->value_cache, value, b, position);
  tl_attention_decode_f32(mixed, query, b->key_cache, b->value_cache, 1, h, g, s, k, stride, stride,
                          1.0f / __builtin_sqrtf((float)k), scores);
  times(branch, mixed, b->output, b, h * k, d);
  add(x, branch, d);

  float *gate = work, *up = gate + f;
  tl_rms_norm_f32(normed, x, b->mlp_norm, 1, d, b->eps);
  times(gate, normed, b->gate, b, d, f);
  times(up, normed, b->up, b, d, f);
  tl_silu_mul_f32(gate, gate, up, f);
  times(branch, gate, b->down, b, f, d);
  add(x, branch, d);
}
