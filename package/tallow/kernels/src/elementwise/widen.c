// tl_widen_f16, tl_widen_bf16: n numbers in half precision as float32, exactly.
#include "elementwise/halves.h"
#include "runtime/kernels.h"

#define WIDEN(half)                                                                                                      \
  void tl_widen_##half(float *y, const uint16_t *x, size_t n) {                                                          \
    size_t i = smaller(before_line(y), n);                                                                               \
    for (size_t j = 0; j < i; j++) y[j] = widen_one_##half(x[j]);                                                        \
    for (; i + LANES <= n; i += LANES) store(y + i, widen_##half(x + i));                                                \
    for (; i < n; i++) y[i] = widen_one_##half(x[i]);                                                                    \
  }

WIDEN(f16)
WIDEN(bf16)
