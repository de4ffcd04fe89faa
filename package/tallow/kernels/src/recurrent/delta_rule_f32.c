// tl_delta_rule_f32   the gated delta rule, position after position: S ← exp(decay) S;  S ← S + k (beta (v - Sᵀ k))ᵀ;
//                     y = Sᵀ q. Without beta the state is not corrected, as in Mamba-2: S ← exp(decay) S + k vᵀ
//                                                    Yang et al. 2024, arXiv:2412.06464; Dao & Gu 2024, arXiv:2405.21060
//   layout  q, k (heads, t, k_width); v, y (heads, t, v_width); decay, beta (heads, t); state (heads, k_width, v_width), all
//           contiguous; beta may be null
//   in out  state
//   range   decay ≤ 1
//   align   none needed       length  any t, k_width; v_width ≥ 1
//   alias   none
//   error   per position ≤ (k_width + 8) ulp of Σ|k||S| + |v|, and of Σ|q||S|
//   threads heads do not depend on each other
#include "runtime/kernels.h"

enum { STRIP = 4 }; // vectors of a state's row that stay in a cache over all positions

// All positions of one head for `vectors` vectors of columns, of which each has `width` elements.
static inline __attribute__((always_inline)) void columns(float *y, const float *q, const float *k, const float *v,
                                                          const float *decay, const float *beta, float *state, size_t t,
                                                          size_t k_width, size_t v_width, size_t vectors, size_t width) {
  for (size_t at = 0; at < t; at++, q += k_width, k += k_width, v += v_width, y += v_width) {
    const vf kept = exp_below_1(splat(decay[at]));
    vf written[STRIP], read[STRIP];
    for (size_t j = 0; j < vectors; j++) written[j] = load_up_to(v + j * LANES, width), read[j] = splat(0.0f);
    if (beta) {
      vf known[STRIP];
      for (size_t j = 0; j < vectors; j++) known[j] = splat(0.0f);
      for (size_t i = 0; i < k_width; i++)
        for (size_t j = 0; j < vectors; j++)
          known[j] = fma(splat(k[i]), load_up_to(state + i * v_width + j * LANES, width), known[j]);
      for (size_t j = 0; j < vectors; j++) written[j] = (written[j] - kept * known[j]) * splat(beta[at]);
    }
    for (size_t i = 0; i < k_width; i++)
      for (size_t j = 0; j < vectors; j++) {
        float *own = state + i * v_width + j * LANES;
        const vf s = fma(splat(k[i]), written[j], kept * load_up_to(own, width));
        store_up_to(own, width, s);
        read[j] = fma(splat(q[i]), s, read[j]);
      }
    for (size_t j = 0; j < vectors; j++) store_up_to(y + j * LANES, width, read[j]);
  }
}

EXPORT void tl_delta_rule_f32(float *y, const float *q, const float *k, const float *v, const float *decay, const float *beta,
                              float *state, size_t heads, size_t t, size_t k_width, size_t v_width) {
  for (; heads--; q += t * k_width, k += t * k_width, v += t * v_width, y += t * v_width, decay += t) {
    size_t j = 0;
    for (; j + STRIP * LANES <= v_width; j += STRIP * LANES)
      columns(y + j, q, k, v + j, decay, beta, state + j, t, k_width, v_width, STRIP, LANES);
    for (; j < v_width; j += LANES)
      columns(y + j, q, k, v + j, decay, beta, state + j, t, k_width, v_width, 1, smaller(LANES, v_width - j));
    state += k_width * v_width;
    if (beta) beta += t;
  }
}
