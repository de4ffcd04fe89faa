// Tiles of sixteen-bit floats in shared memory, and their products by tensor cores.
//
// This is the seam for wgmma and TMA of Hopper's: they take other tiles and other products, and leave alone what
// kernels do with the results.

#pragma once

#include "element.cuh"
#include "memory.cuh"
#include "mma.cuh"
#include "reduce.cuh"

// Rows of Width elements, a multiple of 64. The 16-byte chunks of a row are permuted by its number, so that one chunk of
// eight rows in turn, which is what ldmatrix reads at a time, lies in eight different groups of banks.
template <class T, int Width> struct Tile {
    T* at;

    __device__ __forceinline__ T* chunk(int row, int number) const {
        return at + row * Width + (number ^ row % 8) * 8;
    }
};

// Begin to copy the first `rows` rows, of `width` elements, a multiple of 8; what else there is of the Rows x Width of the
// tile becomes 0. All `Threads` of the block take part.
template <int Rows, int Threads, class T, int Width>
__device__ __forceinline__ void copy_tile(Tile<T, Width> to, const T* from, index_t by_row, index_t rows, int width) {
    constexpr int CHUNKS = Width / 8;
#pragma unroll
    for (int i = threadIdx.x; i < Rows * CHUNKS; i += Threads) {
        int row = i / CHUNKS, number = i % CHUNKS;
        bool wanted = row < rows && number * 8 < width;
        copy_async_16(to.chunk(row, number), wanted ? from + row * by_row + number * 8 : from, wanted);
    }
}

// c += a bᵀ for the 16 · Tiles rows of a from `row` on, and the rows of b.
// c[m][n][i] is the element of row 16m + g + 8 (i / 2), column 8n + 2t + i % 2; see mma.cuh.
template <int Tiles, int Columns, class T, int Width>
__device__ __forceinline__ void multiply_rows(float (&c)[Tiles][Columns][4], Tile<T, Width> a, int row,
                                              Tile<T, Width> b) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < Width / 16; k++) {
        unsigned left[Tiles][4];
#pragma unroll
        for (int m = 0; m < Tiles; m++) load_matrices(left[m], a.chunk(row + m * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
        for (int n = 0; n < Columns / 2; n++) {
            unsigned right[4];
            load_matrices(right, b.chunk(n * 16 + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2));
#pragma unroll
            for (int m = 0; m < Tiles; m++) {
                multiply_add<T>(c[m][n * 2], left[m], right[0], right[1]);
                multiply_add<T>(c[m][n * 2 + 1], left[m], right[2], right[3]);
            }
        }
    }
}

// c += a b, where a is what `multiply_rows` made, rounded, and b has as many rows as a has columns.
template <int Tiles, int Inner, class T, int Width>
__device__ __forceinline__ void multiply(float (&c)[Tiles][Width / 8][4], const float (&a)[Tiles][Inner][4],
                                         Tile<T, Width> b) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < Inner / 2; k++) {
        unsigned left[Tiles][4];  // where c's elements lie, there a's have to
#pragma unroll
        for (int m = 0; m < Tiles; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[m][i] = pack<T>(a[m][k * 2 + i / 2][i % 2 * 2], a[m][k * 2 + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < Width / 16; n++) {
            unsigned right[4];
            load_matrices_transposed(right, b.chunk(k * 16 + lane % 16, n * 2 + lane / 16));
#pragma unroll
            for (int m = 0; m < Tiles; m++) {
                multiply_add<T>(c[m][n * 2], left[m], right[0], right[1]);
                multiply_add<T>(c[m][n * 2 + 1], left[m], right[2], right[3]);
            }
        }
    }
}

template <int Tiles, int Columns> __device__ __forceinline__ void clear(float (&c)[Tiles][Columns][4]) {
#pragma unroll
    for (int m = 0; m < Tiles; m++)
#pragma unroll
        for (int n = 0; n < Columns; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] = 0.0f;
}

// Write c · factor to rows `row`.. of `to`, as far as these are among the first `rows`, and columns among `width`.
template <int Tiles, int Columns, class T>
__device__ __forceinline__ void store(T* to, index_t by_row, int row, index_t rows, int width,
                                      const float (&c)[Tiles][Columns][4], float factor) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < Tiles; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int r = row + m * 16 + half * 8 + lane / 4;
            if (r >= rows) continue;
#pragma unroll
            for (int n = 0; n < Columns; n++)
                if (n * 8 < width)
                    *(Pack<T, 2>*)(to + r * by_row + n * 8 + lane % 4 * 2) = {
                        from_float<T>(c[m][n][half * 2] * factor), from_float<T>(c[m][n][half * 2 + 1] * factor)};
        }
}
