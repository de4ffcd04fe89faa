// Sums and maxima over the threads of a warp and of a block.

#pragma once

constexpr int WARP = 32;

struct Add {
    __device__ static float identity() { return 0.0f; }
    __device__ static float of(float a, float b) { return a + b; }
};

struct Max {
    __device__ static float identity() { return __uint_as_float(0xff800000u); }  // -infinity
    __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

// Return the result to every lane.
template <class Op> __device__ __forceinline__ float warp_reduce(float x) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) x = Op::of(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

// Return the result to every thread. All threads of the block must call it; blockDim.x is a multiple of 32, and y and z
// are 1.
template <class Op> __device__ __forceinline__ float block_reduce(float x) {
    __shared__ float partial[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    x = warp_reduce<Op>(x);
    if (lane == 0) partial[warp] = x;
    __syncthreads();
    x = warp_reduce<Op>(lane < warps ? partial[lane] : Op::identity());
    __syncthreads();  // before the next reduction writes there
    return x;
}
