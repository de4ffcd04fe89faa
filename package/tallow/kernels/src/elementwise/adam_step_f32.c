// One step of Adam, arXiv:1412.6980 algorithm 1, in place:
//   p = shrink · p;  g = sign · grad + decay · p
//   m = m + w1 · (g - m);  v = beta2 · v + w2 · g²;  top = max(top, v)
//   p = p - step · m / (√t / scale + eps), where t is top, or v if top is null
//   options sign, decay, shrink, w1, beta2, w2, step, scale, eps
//   layout  p, grad, m, v, top (n,) contiguous; top may be null      align  none needed       length  any n ≥ 0
//   alias   grad may be any of the others; any other overlap is undefined
//   error   ≤ 1e-6 of the sum of magnitudes in m, v, top and p; NaN stays NaN
#include "runtime/vec.h"

typedef struct {
  vf sign, decay, shrink, w1, beta2, w2, step, scale, eps;
} coefficients;

typedef struct {
  vf p, m, v, top;
} state;

static inline state advance(state s, vf grad, const coefficients *c, int has_top) {
  s.p *= c->shrink;
  vf g = fma(c->decay, s.p, c->sign * grad);
  s.m = fma(c->w1, g - s.m, s.m);
  s.v = fma(c->w2, g * g, c->beta2 * s.v);
  s.top = has_top ? max(s.top, s.v) : s.v;
  s.p -= c->step * (s.m / (__builtin_elementwise_sqrt(s.top) / c->scale + c->eps));
  return s;
}

EXPORT void tl_adam_step_f32(float *p, const float *grad, float *m, float *v, float *top, const float *options, size_t n) {
  const coefficients c = {splat(options[0]), splat(options[1]), splat(options[2]), splat(options[3]), splat(options[4]),
                          splat(options[5]), splat(options[6]), splat(options[7]), splat(options[8])};
  const int has_top = top != 0;
  if (!has_top) top = v; // a dummy that is read and written; v's own value is stored last
  size_t i = 0, rest = n % LANES;
  for (; i + LANES <= n; i += LANES) {
    state s = {load(p + i), load(m + i), load(v + i), load(top + i)};
    s = advance(s, load(grad + i), &c, has_top);
    store(p + i, s.p);
    store(m + i, s.m);
    store(top + i, s.top);
    store(v + i, s.v);
  }
  state s = {load_part(p + i, rest, 0.0f), load_part(m + i, rest, 0.0f), load_part(v + i, rest, 0.0f),
             load_part(top + i, rest, 0.0f)};
  s = advance(s, load_part(grad + i, rest, 0.0f), &c, has_top);
  store_part(p + i, rest, s.p);
  store_part(m + i, rest, s.m);
  store_part(top + i, rest, s.top);
  store_part(v + i, rest, s.v);
}
