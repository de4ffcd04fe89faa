// Blocks of keys and values in shared memory, for kernels that iterate over them.

#pragma once

#include "tile.cuh"

// While a block is multiplied, the next is copied to the other of two buffers.
template <int Keys, int Threads> struct KeyBlocks {
    X* stages;  // in shared memory: 4 · Keys rows of WIDTH
    const X *k, *v;
    index_t k_by_row, v_by_row;
    int keys, width, value_width;

    __device__ __forceinline__ Tile<X, WIDTH, Keys> k_tile(int block) const {
        return {stages + block % 2 * (2 * Keys * WIDTH)};
    }

    __device__ __forceinline__ Tile<X, WIDTH, Keys> v_tile(int block) const {
        return {stages + block % 2 * (2 * Keys * WIDTH) + Keys * WIDTH};
    }

    // Start to copy a block.
    __device__ __forceinline__ void copy(int block) const {
        int key = block * Keys;
        copy_tile<Threads>(k_tile(block), k + key * k_by_row, k_by_row, keys - key, width);
        copy_tile<Threads>(v_tile(block), v + key * v_by_row, v_by_row, keys - key, value_width);
    }
};
