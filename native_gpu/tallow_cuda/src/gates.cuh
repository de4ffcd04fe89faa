// The logistic function, and the slope of silu.

#pragma once

#include "elementwise.cuh"

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// Of silu at x, where s = sigmoid(x).
__device__ __forceinline__ float silu_slope(float x, float s) { return s * (1.0f + x * (1.0f - s)); }
