// tl_gru_f32   the steps of a layer: s = w h + bias;  r, z = σ(gates + s), n = tanh(gates + r s);  h' = n + z (h - n)
//                                                                                Cho et al. 2014, arXiv:1406.1078
//   layout  for all rows of all steps: gates, active (rows, 3, n) in the order r, z, n; y, last_h, s_n (rows, n). For
//           sequences: h (sequences, n); w (3 n, n); bias (3 n,), which may be null. All contiguous
//   steps, range, align, alias   as in lstm_f32.c
//   in      gates, the contribution of the input
//   in out  h, the initial state, becomes the last one
//   out     y; and unless active is null, for the gradients: active, the activated gates, last_h, the state before each
//           step, and s_n, the part of s for n
//   scratch tl_gru_scratch(last - first, n) floats, contents irrelevant
//   error   per step ≤ (n / 4 + 16) ulp of Σ|w||h| + |bias| + |gates| + 1
#include "product/product.h"
#include "recurrent/recurrent.h"
#include "product/transpose.h"

// Three gates, the transposed weight, and the bias.
EXPORT size_t tl_gru_scratch(size_t sequences, size_t n) { return (sequences + n + 1) * row_of(3 * n); }

// One sequence at one step; `from_h` is s.
static void step_forward(float *active, const float *gates, const float *from_h, float *s_n, float *h, size_t n) {
  for (size_t j = 0; j < n; j += LANES) {
    size_t width = smaller(LANES, n - j);
    vf gate[3], s[3];
#pragma clang loop unroll(full)
    for (size_t k = 0; k < 3; k++) gate[k] = load_up_to(gates + k * n + j, width), s[k] = load(from_h + k * n + j);
    vf r = quick_sigmoid(gate[0] + s[0]), z = quick_sigmoid(gate[1] + s[1]), new = tanh(fma(r, s[2], gate[2]));
    store_up_to(h + j, width, fma(z, load_up_to(h + j, width) - new, new));
    if (!active) continue;
    const vf all[3] = {r, z, new};
#pragma clang loop unroll(full)
    for (size_t k = 0; k < 3; k++) store_up_to(active + k * n + j, width, all[k]);
    store_up_to(s_n + j, width, s[2]);
  }
}

EXPORT void tl_gru_f32(float *active, const float *gates, float *y, float *last_h, float *s_n, float *h, const float *w,
                       const float *bias, const size_t *start, const size_t *count, size_t steps, size_t first, size_t last,
                       size_t n, float *scratch) {
  const size_t row = row_of(3 * n);
  float *transposed = scratch, *padded = transposed + n * row, *from_h = padded + row;
  clear(transposed, (n + 1) * row);
  transpose(transposed, row, w, n, 3 * n, n);
  if (bias) copy(padded, bias, 3 * n);
  for (size_t t = 0; t < steps; t++) {
    size_t sequences = smaller(count[t], last);
    if (sequences <= first) continue;
    sequences -= first;
    product_plus(from_h, row, h + first * n, (ptrdiff_t)n, 1, transposed, row, sequences, n, to_lanes(3 * n), padded, 0);
    for (size_t s = 0; s < sequences; s++) {
      size_t at = (start[t] + first + s) * n;
      float *own = h + (first + s) * n;
      if (active) copy(last_h + at, own, n);
      step_forward(active ? active + 3 * at : 0, gates + 3 * at, from_h + s * row, active ? s_n + at : 0, own, n);
      copy(y + at, own, n);
    }
  }
}
