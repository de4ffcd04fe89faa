// Tiles of sixteen-bit floats in shared memory, and their products on tensor cores.
//
// Hopper's wgmma and TMA would be added here: they need other tiles and other products, but the kernels' use of the
// results would not change.

#pragma once

#include "element.cuh"
#include "memory.cuh"
#include "mma.cuh"
#include "reduce.cuh"

// Rows of Width elements, 64 or 128. The 16-byte chunks of a row are permuted by the row number, so that the same chunk
// of eight consecutive rows, which ldmatrix reads at a time, is in eight different groups of banks.
template <class T, int Width> struct Tile {
    T* at;

    // Return the offset of a chunk. Chunk `number ^ n`, n even, is at `offset(row, number) ^ n * 8`, and the chunk 8 n
    // rows further at `offset(row, number) + 8 * n * Width`: few instructions if n is a compile-time constant.
    __device__ __forceinline__ static int offset(int row, int number) { return row * Width + (number ^ row % 8) * 8; }

    __device__ __forceinline__ T* chunk(int row, int number) const { return at + offset(row, number); }
};

// Start to copy the first `rows` rows of `width` elements, a multiple of 8; the rest of the Rows x Width tile becomes
// 0. All `Threads` of the block take part.
template <int Rows, int Threads, class T, int Width>
__device__ __forceinline__ void copy_tile(Tile<T, Width> to, const T* from, index_t by_row, int rows, int width) {
    constexpr int CHUNKS = Width / 8, STEP = Threads / CHUNKS;
    static_assert(STEP % 8 == 0 && Rows % STEP == 0, "each thread copies whole steps");
    int row = threadIdx.x / CHUNKS, number = threadIdx.x % CHUNKS;
    T* target = to.chunk(row, number);
    from += row * by_row + number * 8;
    rows = number * 8 < width ? rows - row : 0;
#pragma unroll
    for (int i = 0; i < Rows; i += STEP, from += STEP * by_row) copy_async_16(target + i * Width, from, i < rows);
}

// c += a bᵀ for the 16 · Tiles rows of a from `row`, and the rows of b.
// c[m][n][i] is the element of row 16m + g + 8 (i / 2), column 8n + 2t + i % 2; see mma.cuh.
template <int Tiles, int Columns, class T, int Width>
__device__ __forceinline__ void multiply_rows(float (&c)[Tiles][Columns][4], Tile<T, Width> a, int row,
                                              Tile<T, Width> b) {
    int lane = threadIdx.x % WARP;
    int from_a = a.offset(row + lane % 16, lane / 16), from_b = b.offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
    for (int k = 0; k < Width; k += 16) {
        unsigned left[Tiles][4];
#pragma unroll
        for (int m = 0; m < Tiles; m++) load_matrices(left[m], a.at + (from_a ^ k) + m * 16 * Width);
#pragma unroll
        for (int n = 0; n < Columns; n += 2) {
            unsigned right[4];
            load_matrices(right, b.at + (from_b ^ k) + n * 8 * Width);
#pragma unroll
            for (int m = 0; m < Tiles; m++) {
                multiply_add<T>(c[m][n], left[m], right[0], right[1]);
                multiply_add<T>(c[m][n + 1], left[m], right[2], right[3]);
            }
        }
    }
}

// c += a b, where a is the rounded result of `multiply_rows`, and b has as many rows as a has columns.
template <int Tiles, int Inner, class T, int Width>
__device__ __forceinline__ void multiply(float (&c)[Tiles][Width / 8][4], const float (&a)[Tiles][Inner][4],
                                         Tile<T, Width> b) {
    int lane = threadIdx.x % WARP, from_b = b.offset(lane % 16, lane / 16);
#pragma unroll
    for (int k = 0; k < Inner; k += 2) {
        unsigned left[Tiles][4];  // c's elements are already where a's must be
#pragma unroll
        for (int m = 0; m < Tiles; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[m][i] = pack<T>(a[m][k + i / 2][i % 2 * 2], a[m][k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < Width / 8; n += 2) {
            unsigned right[4];
            load_matrices_transposed(right, b.at + (from_b ^ n * 8) + k * 8 * Width);
#pragma unroll
            for (int m = 0; m < Tiles; m++) {
                multiply_add<T>(c[m][n], left[m], right[0], right[1]);
                multiply_add<T>(c[m][n + 1], left[m], right[2], right[3]);
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

// Write c · factor to rows `row`.. of `to`, limited to the first `rows` rows and `width` columns.
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
