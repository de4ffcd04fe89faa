// Many arrays in one launch. Their addresses are kernel arguments, which may take 4096 bytes: so nothing is copied to
// the device before the launch, and a captured graph keeps them. tallow_cuda/lists.py fills in the same struct.

#pragma once

#include "element.cuh"

constexpr int TENSORS = 64;        // maximum in one launch
constexpr int PER_BLOCK = 4096;    // elements per block, all of one tensor
constexpr int LIST_THREADS = 256;

template <int LISTS> struct TensorLists {
    void* at[LISTS][TENSORS];  // arrays at the same index have one size; an absent one is null
    index_t size[TENSORS];
    int first[TENSORS];        // the first block of each; for unused entries it is past all blocks
};

// The elements that a block processes.
struct Part {
    int tensor;
    index_t start, end;
};

template <int LISTS> __device__ __forceinline__ Part part_of_block(const TensorLists<LISTS>& lists) {
    int low = 0, block = blockIdx.x;
#pragma unroll
    for (int step = TENSORS / 2; step > 0; step /= 2)
        if (lists.first[low + step] <= block) low += step;
    index_t start = (index_t)(block - lists.first[low]) * PER_BLOCK, size = lists.size[low];
    return {low, start, start + PER_BLOCK < size ? start + PER_BLOCK : size};
}
