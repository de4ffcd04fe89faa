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
