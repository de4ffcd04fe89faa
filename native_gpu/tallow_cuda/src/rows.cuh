// Rows, and the threads that share one: a block, or of short rows a warp.
//
// A block is (32, rows) threads, of which each warp has a row; or (threads, 1).

#pragma once

#include "elementwise.cuh"
#include "reduce.cuh"

// The row of this thread; some of the last block's are behind the last one.
__device__ __forceinline__ index_t row_of_thread() { return (index_t)blockIdx.x * blockDim.y + threadIdx.y; }

// How many rows the grid has room for.
__device__ __forceinline__ index_t rows_of_grid() { return (index_t)gridDim.x * blockDim.y; }

// The result over all threads of the row, which each of them gets and all have to call.
template <class Op> __device__ __forceinline__ float row_reduce(float x) {
    return blockDim.x == WARP ? warp_reduce<Op>(x) : block_reduce<Op>(x);
}
