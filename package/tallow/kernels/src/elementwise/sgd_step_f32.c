// One step of gradient descent, in place:
//   g = sign · grad + decay · p
//   b = momentum · b + keep · g;  g = nesterov ? g + momentum · b : b        skipped if b is null
//   p = p - step · g
//   options sign, decay, momentum, keep, step, nesterov: 0 or 1
//   layout  p, grad, b (n,) contiguous; b may be null      align  none needed       length  any n ≥ 0
//   alias   grad may be p or b; any other overlap is undefined
//   error   ≤ 1e-6 of the sum of magnitudes in b and p; NaN stays NaN
#include "runtime/vec.h"

// a · b + c as PyTorch rounds it: once, after c, which may be a product. The compiler could do so with that one instead.
static inline vf plus(vf a, vf b, vf c) {
#if defined __wasm_relaxed_simd__
  return fma(a, b, c);
#else
  return TIMES_PLUS(a, b, c);
#endif
}

typedef struct {
  vf sign, decay, momentum, keep, step;
} coefficients;

typedef struct {
  vf p, b;
} state;

static inline state advance(state s, vf grad, const coefficients *c, int decays, int has_b, int nesterov) {
  vf g = c->sign * grad;
  if (decays) g = plus(c->decay, s.p, g); // else an infinite parameter would become NaN
  if (has_b) {
    s.b = plus(c->keep, g, c->momentum * s.b);
    g = nesterov ? plus(c->momentum, s.b, g) : s.b;
  }
  s.p -= c->step * g;
  return s;
}

EXPORT void tl_sgd_step_f32(float *p, const float *grad, float *b, const float *options, size_t n) {
  const coefficients c = {splat(options[0]), splat(options[1]), splat(options[2]), splat(options[3]), splat(options[4])};
  const int decays = options[1] != 0.0f, nesterov = options[5] != 0.0f;
  const int has_b = b != 0;
  if (!has_b) b = p; // a dummy that is read and written; the parameter's own value is stored last
  size_t i = 0, rest = n % LANES;
  for (; i + LANES <= n; i += LANES) {
    state s = advance((state){load(p + i), load(b + i)}, load(grad + i), &c, decays, has_b, nesterov);
    store(b + i, s.b);
    store(p + i, s.p);
  }
  state s = {load_part(p + i, rest, 0.0f), load_part(b + i, rest, 0.0f)};
  s = advance(s, load_part(grad + i, rest, 0.0f), &c, decays, has_b, nesterov);
  store_part(b + i, rest, s.b);
  store_part(p + i, rest, s.p);
}
