// Add the outputs of some experts for one row: y += Σ weight · Wdown (silu(Wgate x) * (Wup x)).
//   layout  x, y (D,); each matrix (out, in) row-major contiguous, of floats or of quantised blocks as its format says: gate and
//           up (F, D), down (D, F), without biases
//   scratch tl_experts_scratch(mixture) floats
//   align   none needed       length  count, D, F ≥ 1
//   alias   nothing overlaps
//   error   as its parts: linear, silu_mul; with blocks, round_rows and quantized_linear.h
//   threads a call may run on several at once: see stages.h. The result does not depend on their number, nor on `chunks`
// Not in WASM: the page would load 2 KB more, and such models are larger than its memory.
#if !defined __wasm__
#include "blocks/stages.h"

enum { ROUND, EXPAND, ROUND_GATED, CONTRACT, STAGES };

typedef struct {
  affine gate, up, down;
  float weight;
} expert;

typedef struct {
  const expert *experts;
  size_t count, width, hidden; // count, D, F
} mixture;

typedef struct {
  float *y;
  const float *x;
  float *scratch;
  stages stages;
} mixture_call;

EXPORT size_t tl_experts_scratch(const mixture *m) {
  const size_t inner = m->count * m->hidden;
  return m->width + 2 * inner + (m->width > inner ? m->width : inner);
}

// Whether the rows that a stage multiplies are rounded: floats are multiplied as they are, and may have any length.
static int takes_blocks(const mixture *m, uint32_t stage) {
  for (size_t i = 0; i < m->count; i++) {
    const expert *e = m->experts + i;
    if ((stage == ROUND ? e->gate.format > e->up.format ? e->gate.format : e->up.format : e->down.format) > BFLOAT16) return 1;
  }
  return 0;
}

static void run(const void *of, const void *call, uint32_t stage, part p) {
  const mixture *m = of;
  const mixture_call *c = call;
  size_t d = m->width, f = m->hidden, bytes = tl_rounded_bytes(f);
  float *branch = c->scratch, *gated = branch + d, *up = gated + m->count * f, *rounded_rows = up + m->count * f;
  // A rounded row takes less than k floats.
  unsigned char *rounded = (unsigned char *)rounded_rows;
  p.rounded = rounded;
  p.rows = 1;
  if (stage % 2 == 0) {
    if (!takes_blocks(m, stage)) return;
    if (stage == ROUND)
      tl_round_rows_f32(rounded, c->x, 1, d);
    else
      tl_round_rows_f32(rounded, gated, m->count, f);
    return;
  }
  for (size_t i = 0; i < m->count; i++) {
    const expert *e = m->experts + i;
    float *g = gated + i * f, *u = up + i * f;
    if (stage == EXPAND) {
      size_t first = first_column(f, &p), last = last_column(f, &p);
      times(g, c->x, e->gate, d, f, &p);
      times(u, c->x, e->up, d, f, &p);
      tl_silu_mul_f32(g + first, g + first, u + first, last - first);
      for (size_t j = first; j < last; j++) g[j] *= e->weight;
    } else {
      p.rounded = rounded + i * bytes;
      times(branch, g, e->down, f, d, &p);
      add(c->y, branch, d, &p);
    }
  }
}

EXPORT void tl_experts_f32(const mixture *m, mixture_call *c, float *scratch) {
  run_stages(&c->stages, STAGES, run, m, c, scratch);
}
#endif
