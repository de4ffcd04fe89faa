// out[0..LANES) = a chain of `steps` multiply-adds in twelve independent registers each: the most this engine can do, since
// nothing waits for memory. 24 · LANES · steps floating-point operations.
#include "../../package/tallow/kernels/src/runtime/vec.h"

enum { REGISTERS = 12 };

EXPORT void bench_peak(float *out, size_t steps) {
  vf acc[REGISTERS], scale = splat(out[0]), shift = splat(out[1]);
  for (int i = 0; i < REGISTERS; i++) acc[i] = splat((float)i);
  for (; steps--;)
#pragma clang loop unroll(full)
    for (int i = 0; i < REGISTERS; i++) acc[i] = fma(acc[i], scale, shift);
  vf total = {0};
  for (int i = 0; i < REGISTERS; i++) total += acc[i];
  store(out, total);
}
