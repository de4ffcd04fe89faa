// tl_select_f32   y[i] = a[i] where mask[i] is true, and b[i] elsewhere; a[0] or b[0] if its step is 0
//   layout  y, a, b (n,) contiguous; mask (n,) contiguous, of bytes that are 0 or 1; steps 0 or 1
//   align   none needed       length  any n ≥ 0
//   alias   y may be a or b where its step is 1; any other overlap is undefined
//   error   none: bits are copied
#include "runtime/vec.h"

typedef uint8_t bytes __attribute__((vector_size(LANES), aligned(1)));

EXPORT void tl_select_f32(float *y, const uint8_t *mask, const float *a, const float *b, size_t n, size_t a_step,
                          size_t b_step) {
  if (!n) return; // a and b may be null
  size_t i = 0;
  vf yes = splat(*a), no = splat(*b);
  for (; i + LANES <= n; i += LANES) {
    if (a_step) yes = load(a + i);
    if (b_step) no = load(b + i);
    store(y + i, select(-__builtin_convertvector(*(const bytes *)(mask + i), vi), yes, no));
  }
  for (; i < n; i++) y[i] = mask[i] ? a[i * a_step] : b[i * b_step];
}
