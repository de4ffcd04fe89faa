// tl_lstm_f32           the steps of a layer: i, f, o = σ, g = tanh of gates + w h;  c' = f c + i g,  h' = o tanh c'
// tl_lstm_backward_f32  their gradients                    Hochreiter & Schmidhuber 1997, doi:10.1162/neco.1997.9.8.1735
//
//   layout  for all rows of all steps: gates, active, d_gates (rows, 4, n) in the order i, f, g, o; y, g_y, last_h, last_c,
//           tanh_c (rows, n). For sequences: h, c, d_h, d_c (sequences, n); w (4 n, n). All contiguous
//   steps   in the order of computation: step t has the rows from start[t], for the first count[t] sequences
//   range   sequences from `first` to `last`: calls for different ranges write to different memory, and may run
//           concurrently
//   in      forward: gates, the contribution of the input
//   in out  forward: h and c, the initial states, become the last ones.
//           backward: d_h and d_c, the gradients of the last states, become those of the initial ones
//   out     forward: y, and unless active is null, what backward reads: active, the activated gates, the state before each
//           step, last_h and last_c, and tanh_c. backward: d_gates
//   scratch tl_lstm_scratch(last - first, n) floats, contents irrelevant
//   align   none needed       alias   none
//   error   per step ≤ (n / 4 + 16) ulp of Σ|w||h| + |gates| + 1
#include "product/product.h"
#include "recurrent/recurrent.h"
#include "product/transpose.h"

// Four gates, and the weight with padded rows, or transposed.
EXPORT size_t tl_lstm_scratch(size_t sequences, size_t n) { return (sequences + n) * row_of(4 * n) + 4 * n * row_of(n); }

typedef struct {
  vf i, f, g, o, c, tanh_c, h;
} cell;

static inline cell forward(vf i, vf f, vf g, vf o, vf c) {
  cell made = {quick_sigmoid(i), quick_sigmoid(f), tanh(g), quick_sigmoid(o), c, c, c};
  made.c = fma(made.f, c, made.i * made.g);
  made.tanh_c = tanh(made.c);
  made.h = made.o * made.tanh_c;
  return made;
}

// One sequence at one step; `from_h` is the state's contribution to the gates.
static void step_forward(float *active, const float *gates, const float *from_h, float *c, float *tanh_c, float *h, size_t n) {
  for (size_t j = 0; j < n; j += LANES) {
    size_t width = smaller(LANES, n - j);
    vf gate[4];
#pragma clang loop unroll(full)
    for (size_t k = 0; k < 4; k++) gate[k] = load_up_to(gates + k * n + j, width) + load(from_h + k * n + j);
    cell made = forward(gate[0], gate[1], gate[2], gate[3], load_up_to(c + j, width));
    store_up_to(c + j, width, made.c), store_up_to(h + j, width, made.h);
    if (!active) continue;
    const vf all[4] = {made.i, made.f, made.g, made.o};
#pragma clang loop unroll(full)
    for (size_t k = 0; k < 4; k++) store_up_to(active + k * n + j, width, all[k]);
    store_up_to(tanh_c + j, width, made.tanh_c);
  }
}

EXPORT void tl_lstm_f32(float *active, const float *gates, float *y, float *last_h, float *last_c, float *tanh_c, float *h,
                        float *c, const float *w, const size_t *start, const size_t *count, size_t steps, size_t first,
                        size_t last, size_t n, float *scratch) {
  const size_t row = row_of(4 * n);
  float *transposed = scratch, *from_h = transposed + n * row;
  clear(transposed, n * row);
  transpose(transposed, row, w, n, 4 * n, n);
  for (size_t t = 0; t < steps; t++) {
    size_t sequences = smaller(count[t], last);
    if (sequences <= first) continue;
    sequences -= first;
    product(from_h, row, h + first * n, (ptrdiff_t)n, 1, transposed, row, sequences, n, to_lanes(4 * n), 0);
    for (size_t s = 0; s < sequences; s++) {
      size_t at = (start[t] + first + s) * n, own = (first + s) * n;
      if (active) copy(last_h + at, h + own, n), copy(last_c + at, c + own, n);
      step_forward(active ? active + 4 * at : 0, gates + 4 * at, from_h + s * row, c + own, active ? tanh_c + at : 0,
                   h + own, n);
      copy(y + at, h + own, n);
    }
  }
}

typedef struct {
  vf i, f, g, o, c;
} cell_gradient;

static inline cell_gradient backward(vf i, vf f, vf g, vf o, vf last_c, vf tanh_c, vf d_h, vf d_c) {
  const vf one = splat(1.0f), d = fma(d_h * o, one - tanh_c * tanh_c, d_c);
  return (cell_gradient){d * g * i * (one - i), d * last_c * f * (one - f), d * i * (one - g * g),
                         d_h * tanh_c * o * (one - o), d * f};
}

// One sequence at one step: d_gates, and d_c in place.
static void step_backward(float *d_gates, float *d_c, const float *d_h, const float *g_y, const float *active,
                          const float *last_c, const float *tanh_c, size_t n) {
  for (size_t j = 0; j < n; j += LANES) {
    size_t width = smaller(LANES, n - j);
    vf gate[4];
#pragma clang loop unroll(full)
    for (size_t k = 0; k < 4; k++) gate[k] = load_up_to(active + k * n + j, width);
    cell_gradient d =
        backward(gate[0], gate[1], gate[2], gate[3], load_up_to(last_c + j, width), load_up_to(tanh_c + j, width),
                 load_up_to(d_h + j, width) + load_up_to(g_y + j, width), load_up_to(d_c + j, width));
    const vf all[4] = {d.i, d.f, d.g, d.o};
#pragma clang loop unroll(full)
    for (size_t k = 0; k < 4; k++) store_up_to(d_gates + k * n + j, width, all[k]);
    store_up_to(d_c + j, width, d.c);
  }
}

EXPORT void tl_lstm_backward_f32(float *d_gates, float *d_h, float *d_c, const float *g_y, const float *active,
                                 const float *last_c, const float *tanh_c, const float *w, const size_t *start,
                                 const size_t *count, size_t steps, size_t first, size_t last, size_t n, float *scratch) {
  const size_t row = row_of(n);
  float *weight = scratch, *through_h = weight + 4 * n * row;
  for (size_t k = 0; k < 4 * n; k++)
    for (size_t j = 0; j < to_lanes(n); j++) weight[k * row + j] = j < n ? w[k * n + j] : 0.0f;
  for (size_t t = steps; t-- > 0;) {
    size_t sequences = smaller(count[t], last);
    if (sequences <= first) continue;
    sequences -= first;
    for (size_t s = 0; s < sequences; s++) {
      size_t at = (start[t] + first + s) * n, own = (first + s) * n;
      step_backward(d_gates + 4 * at, d_c + own, d_h + own, g_y + at, active + 4 * at, last_c + at, tanh_c + at, n);
    }
    product(through_h, row, d_gates + 4 * (start[t] + first) * n, (ptrdiff_t)(4 * n), 1, weight, row, sequences, 4 * n,
            to_lanes(n), 0);
    for (size_t s = 0; s < sequences; s++) copy(d_h + (first + s) * n, through_h + s * row, n);
  }
}
