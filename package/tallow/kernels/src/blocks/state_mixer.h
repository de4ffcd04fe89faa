// What some blocks of decode_blocks_f32.c have instead of attention: a state of a fixed size for each text, which each of its
// rows replaces. n is the normalized row of D elements, `convolution` is tl_short_convolution_f32.
//   gated convolution, without heads:  b, c, x = W n of D elements each;  mixed = c convolution(b x)
//   gated delta rule:  u = silu(convolution(W0 n)), which are G queries, G keys of K elements and H values of V elements; the
//                      former are normalized to length 1, queries are divided by √K; gate, strength, size = W1 n, W2 n, W3 n;
//                      beta = σ(strength), decay = -exp(log_rate) softplus(size + size_bias);
//                      mixed = rms_norm(tl_delta_rule_f32) silu(gate) of each head
//   layout  inputs, the matrices of W, (out, in) as in decode_blocks_f32.c, with biases or null for none; weight (C, taps),
//           bias (C,) or null for none; past (texts, taps - 1, C), state (texts, H, K, V), contiguous;
//           log_rate, size_bias (H,), norm (V,). C is D, or 2 G K + H V
//   states  a row at the first position that it sees begins from states of zeros. Rows of one text are in the order of their
//           positions, each after the one before
#ifndef TALLOW_STATE_MIXER_H
#define TALLOW_STATE_MIXER_H

#include "blocks/stages.h"

enum { MOST_INPUTS = 4 };
#define LENGTH_EPS 1e-6f // of queries and keys

typedef struct {
  affine inputs[MOST_INPUTS];
  size_t widths[MOST_INPUTS]; // 0 where there is no matrix
  const float *weight, *bias; // of the convolution
  float *past;
  size_t channels, taps; // C
  const float *log_rate, *size_bias, *norm;
  float *state;
  size_t heads, key_heads, key_width, value_width; // H, G, K, V; H = 0 for a gated convolution
  int32_t tiled; // key head g serves the heads g, g + G, ..., instead of H / G that follow each other
} state_mixer;

static __attribute__((noinline)) size_t projected(const state_mixer *m) { // elements of a row
  size_t total = 0;
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t i = 0; i < MOST_INPUTS; i++) total += m->widths[i];
  return total;
}

// Floats of a row: the projected ones, and the convolution's outputs.
static inline size_t mixer_row(const state_mixer *m) { return projected(m) + m->channels; }

static inline int multiplies_blocks(const state_mixer *m) {
  for (size_t i = 0; i < MOST_INPUTS; i++)
    if (m->inputs[i].format > BFLOAT16) return 1;
  return 0;
}

// The outputs of matrix i begin after those of the matrices before it, for all rows.
static __attribute__((noinline)) float *input(const state_mixer *m, float *work, size_t i, size_t rows) {
  while (i--) work += m->widths[i] * rows;
  return work;
}

static inline void project(const state_mixer *m, float *work, const float *normed, size_t width, const part *p) {
#pragma clang loop unroll(disable)
  for (size_t i = 0; i < MOST_INPUTS; i++)
    if (m->widths[i]) times(input(m, work, i, p->rows), normed, m->inputs[i], width, m->widths[i], p);
}

static __attribute__((noinline)) float vector_exp(float x) { return exp(splat(x))[0]; }

// ln(1 + e^x): the greater of x and 0, and 2 artanh(e / (2 + e)) with e = e^-|x|.
static inline float softplus(float x) {
  const float e = vector_exp(x < 0 ? x : -x), s = e / (2.0f + e), q = s * s;
  float sum = 1.0f / 15.0f;
  for (int k = 13; k > 0; k -= 2) sum = sum * q + 1.0f / (float)k;
  return (x > 0 ? x : 0.0f) + 2.0f * s * sum;
}

// Vectors multiplied by σ of others, or by a number.
static __attribute__((noinline)) void times_sigmoid(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i += LANES) {
    const size_t width = smaller(LANES, n - i);
    store_up_to(y + i, width, load_up_to(y + i, width) * sigmoid(load_up_to(x + i, width)));
  }
}

static inline void times_number(float *x, size_t n, float by) {
#pragma clang loop unroll(disable)
  for (size_t i = 0; i < n; i++) x[i] *= by;
}

// Apply the convolution to a row, and for the delta rule what follows up to it; write the mixed values without heads.
static inline void convolve(const state_mixer *m, const int64_t *place, float *work, float *mixed, size_t row, size_t rows) {
  const size_t c = m->channels, kept = (m->taps - 1) * c, keys = m->key_heads * m->key_width;
  float *past = m->past + (size_t)place[0] * kept, *in = work + row * m->widths[0];
  float *out = work + rows * projected(m) + row * c;
  if (place[1] == place[2]) clear(past, kept);
  if (!m->heads) {
#pragma clang loop unroll(disable)
    for (size_t i = 0; i < c; i++) in[2 * c + i] *= in[i];
    tl_short_convolution_f32(out, past, in + 2 * c, m->weight, m->bias, 0, c, 1, 1, c, m->taps);
#pragma clang loop unroll(disable)
    for (size_t i = 0; i < c; i++) mixed[row * c + i] = in[c + i] * out[i];
    return;
  }
  tl_short_convolution_f32(out, past, in, m->weight, m->bias, 0, c, 1, 1, c, m->taps);
  times_sigmoid(out, out, c);
  // The root of the mean square is the length divided by √K.
  const float k = (float)m->key_width;
  tl_rms_norm_f32(out, out, 0, 2 * m->key_heads, m->key_width, LENGTH_EPS / k);
  times_number(out, keys, 1.0f / k);
  times_number(out + keys, keys, 1.0f / __builtin_sqrtf(k));
  float *strength = input(m, work, 2, rows) + row * m->heads, *size = input(m, work, 3, rows) + row * m->heads;
  for (size_t h = 0; h < m->heads; h++) {
    strength[h] = 1.0f / (1.0f + vector_exp(-strength[h]));
    size[h] = -vector_exp(m->log_rate[h]) * softplus(size[h] + m->size_bias[h]);
  }
}

// The heads of a part, each for all rows.
static inline void apply_rule(const state_mixer *m, const int64_t *places, float *work, float *mixed, float eps, const part *p) {
  const size_t k = m->key_width, v = m->value_width, keys = m->key_heads * k, each = m->heads ? m->heads / m->key_heads : 0;
  const float *gate = input(m, work, 1, p->rows), *beta = input(m, work, 2, p->rows), *decay = input(m, work, 3, p->rows);
  for (size_t h = first_of(m->heads, p); h < last_of(m->heads, p); h++)
    for (size_t r = 0; r < p->rows; r++) {
      const int64_t *place = places + r * 3;
      const float *u = work + p->rows * projected(m) + r * m->channels;
      const float *query = u + (m->tiled ? h % m->key_heads : h / each) * k;
      float *state = m->state + ((size_t)place[0] * m->heads + h) * k * v, *y = mixed + (r * m->heads + h) * v;
      if (place[1] == place[2]) clear(state, k * v);
      tl_delta_rule_f32(y, query, query + keys, u + 2 * keys + h * v, decay + r * m->heads + h, beta + r * m->heads + h, state,
                        1, 1, k, v);
      tl_rms_norm_f32(y, y, m->norm, 1, v, eps);
      tl_silu_mul_f32(y, gate + (r * m->heads + h) * v, y, v);
    }
}

#endif
