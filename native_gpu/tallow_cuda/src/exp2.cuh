// Exponentials for softmax.

#pragma once

#include "reduce.cuh"

__device__ __forceinline__ float minus_infinity() { return Max::identity(); }

// Return 2 to the power of x; 0 on underflow.
__device__ __forceinline__ float exp2_fast(float x) {
#ifdef TALLOW_EMULATED
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
