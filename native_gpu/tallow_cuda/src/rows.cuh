// Rows, and the threads that share one: a block, or a warp for short rows.
//
// A block is (32, rows) threads, where each warp has a row; or (threads, 1).

#pragma once

#include "elementwise.cuh"
#include "reduce.cuh"

// Return the row of this thread; in the last block it may be past the end.
__device__ __forceinline__ index_t row_of_thread() { return (index_t)blockIdx.x * blockDim.y + threadIdx.y; }

// Return the number of rows that the grid covers at once.
__device__ __forceinline__ index_t rows_of_grid() { return (index_t)gridDim.x * blockDim.y; }

// Return the result over all threads of the row to each of them; all must call it.
template <class Op> __device__ __forceinline__ float row_reduce(float x) {
    return blockDim.x == WARP ? warp_reduce<Op>(x) : block_reduce<Op>(x);
}

// Elements of a row that a thread can keep in registers, so that the row is read from memory once.
constexpr int KEPT = 32;

__device__ __forceinline__ bool is_kept(index_t width) { return width <= KEPT * (index_t)blockDim.x; }

// Call f(c, i) for each pack of N elements from i that this thread has of a kept row; c < KEPT / N is a constant.
template <int N, class F> __device__ __forceinline__ void each_kept(int width, F f) {
#pragma unroll
    for (int c = 0; c < KEPT / N; c++) {
        int i = (c * (int)blockDim.x + (int)threadIdx.x) * N;
        if (i < width) f(c, i);
    }
}

// Load the packs of a kept row that this thread has. With a conversion right here, each load would wait for the one
// before it.
template <class T, int N>
__device__ __forceinline__ void load_kept(const T* row, int width, Pack<T, N> (&packs)[KEPT / N]) {
    each_kept<N>(width, [&](int c, int i) { packs[c] = *(const Pack<T, N>*)(row + i); });
}

// Between two uses of kept packs: make the compiler convert their elements again, instead of keeping them as floats.
template <class T, int N> __device__ __forceinline__ void stay_packed(Pack<T, N> (&packs)[KEPT / N]) {
#ifndef TALLOW_EMULATED
#pragma unroll
    for (int c = 0; c < KEPT / N; c++)
#pragma unroll
        for (int j = 0; j < (int)sizeof(packs[c]) / 4; j++) asm volatile("" : "+r"(((unsigned*)&packs[c])[j]));
#endif
}
