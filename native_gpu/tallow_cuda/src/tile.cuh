// Tiles of sixteen-bit floats in shared memory, and their products on tensor cores.
//
// WGMMA: whether the products are computed by the warpgroups of compute capability 9.0, see wgmma.cuh. The results of a
// warp are the same, and in the same registers.

#pragma once

#include "element.cuh"
#include "memory.cuh"
#include "mma.cuh"
#include "reduce.cuh"
#include "wgmma.cuh"

// Rows of Width elements, 64 or 128, in panels of 64 columns: each has 128 bytes of every row. The 16-byte chunks of
// these are permuted by the row number, so that the same chunk of eight consecutive rows, which ldmatrix reads at a
// time, is in eight different groups of banks. wgmma.cuh, too, can read panels that are permuted in this way.
template <class T, int Width, int Rows> struct Tile {
    T* at;

    // Return the offset of a chunk, `number` < 8. Chunk `number ^ n`, n even, is at `offset(row, number) ^ n * 8`, and
    // the chunk 8 n rows further at `offset(row, number) + n * 512`: few instructions if n is a compile-time constant.
    __device__ __forceinline__ static int offset(int row, int number) { return row * 64 + (number ^ row % 8) * 8; }

    // Return the start of the panel that has a column.
    __device__ __forceinline__ T* panel(int column) const { return at + column / 64 * (Rows * 64); }

    __device__ __forceinline__ T* chunk(int row, int number) const {
        return panel(number * 8) + offset(row, number % 8);
    }
};

// Start to copy the first `rows` rows of `width` elements, a multiple of 8; the rest of the Rows x Width tile becomes
// 0. All `Threads` of the block take part.
template <int Threads, class T, int Width, int Rows>
__device__ __forceinline__ void copy_tile(Tile<T, Width, Rows> to, const T* from, index_t by_row, int rows, int width) {
    constexpr int CHUNKS = Width / 8, STEP = Threads / CHUNKS;
    static_assert(STEP % 8 == 0, "the permutation of chunks is the same in all rows of a thread");
    int row = threadIdx.x / CHUNKS, number = threadIdx.x % CHUNKS;
    T* target = to.chunk(row, number);
    from += row * by_row + number * 8;
    rows = number * 8 < width ? rows - row : 0;
#pragma unroll
    for (int i = 0; i < Rows; i += STEP, from += STEP * by_row)
        if (Rows % STEP == 0 || row + i < Rows) copy_async_16(target + i * 64, from, i < rows);
}

template <int Tiles, int Columns> __device__ __forceinline__ void clear(float (&c)[Tiles][Columns][4]) {
#pragma unroll
    for (int m = 0; m < Tiles; m++)
#pragma unroll
        for (int n = 0; n < Columns; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] = 0.0f;
}

// c = a bᵀ for the 16 · Tiles rows of a from `row`, and the rows of b.
// c[m][n][i] is the element of row 16m + g + 8 (i / 2), column 8n + 2t + i % 2; see mma.cuh.
template <int Tiles, int Columns, class T, int Width, int Rows>
__device__ __forceinline__ void multiply_rows(float (&c)[Tiles][Columns][4], Tile<T, Width, Rows> a, int row,
                                              Tile<T, Width, Columns * 8> b) {
#if WGMMA
    static_assert(Tiles == 1 && Columns % 8 == 0, "a product of a warpgroup has 16 rows of each warp, and 64 columns");
    matrix_t left = matrix_at(a.at + row / 64 * 64 * 64), right = matrix_at(b.at);
    warpgroup_fence();
#pragma unroll
    for (int n = 0; n < Columns; n += 8)
#pragma unroll
        for (int k = 0; k < Width; k += 16)
            warpgroup_multiply_rows<T>(c[0], n, left + k / 64 * Rows * 8 + k % 64 / 8,
                                       right + k / 64 * Columns * 64 + n * 64 + k % 64 / 8, k > 0);
    warpgroup_commit();
#else
    clear(c);
    int lane = threadIdx.x % WARP;
    int from_a = a.offset(row + lane % 16, lane / 16), from_b = b.offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
    for (int k = 0; k < Width; k += 16) {
        unsigned left[Tiles][4];
#pragma unroll
        for (int m = 0; m < Tiles; m++) load_matrices(left[m], a.panel(k) + (from_a ^ k % 64) + m * 16 * 64);
#pragma unroll
        for (int n = 0; n < Columns; n += 2) {
            unsigned right[4];
            load_matrices(right, b.panel(k) + (from_b ^ k % 64) + n * 8 * 64);
#pragma unroll
            for (int m = 0; m < Tiles; m++) {
                multiply_add<T>(c[m][n], left[m], right[0], right[1]);
                multiply_add<T>(c[m][n + 1], left[m], right[2], right[3]);
            }
        }
    }
#endif
}

// c += a b, where a is the rounded result of `multiply_rows`, and b has as many rows as a has columns.
template <int Tiles, int Inner, class T, int Width>
__device__ __forceinline__ void multiply(float (&c)[Tiles][Width / 8][4], const float (&a)[Tiles][Inner][4],
                                         Tile<T, Width, Inner * 8> b) {
#if WGMMA
    static_assert(Tiles == 1, "a product of a warpgroup has 16 rows of each warp");
    unsigned left[Inner / 2][4];  // c's elements are already where a's must be
#pragma unroll
    for (int k = 0; k < Inner; k += 2)
#pragma unroll
        for (int i = 0; i < 4; i++)
            left[k / 2][i] = pack<T>(a[0][k + i / 2][i % 2 * 2], a[0][k + i / 2][i % 2 * 2 + 1]);
    matrix_t right = matrix_at(b.at);
    settle(c[0]);
    settle(left);
    warpgroup_fence();
#pragma unroll
    for (int n = 0; n < Width / 8; n += 8)
#pragma unroll
        for (int k = 0; k < Inner; k += 2)
            warpgroup_multiply<T>(c[0], n, left[k / 2], right + n / 8 * Inner * 64 + k * 64);
    warpgroup_commit();
#else
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
            load_matrices_transposed(right, b.panel(n * 8) + (from_b ^ n % 8 * 8) + k * 8 * 64);
#pragma unroll
            for (int m = 0; m < Tiles; m++) {
                multiply_add<T>(c[m][n], left[m], right[0], right[1]);
                multiply_add<T>(c[m][n + 1], left[m], right[2], right[3]);
            }
        }
    }
#endif
}

// Wait for all products but the last `Pending`; c, the result of one of them, can then be used.
template <int Pending, int Tiles, int Columns>
__device__ __forceinline__ void finish_products(float (&c)[Tiles][Columns][4]) {
#if WGMMA
    warpgroup_wait<Pending>(c[0]);
#endif
}

// Wait for this thread's copies; after a barrier, all can be multiplied.
__device__ __forceinline__ void finish_copies() {
    copy_async_wait<0>();
#if WGMMA
    show_copies_to_products();
#endif
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
