// Products on the tensor cores of compute capability 9.0, and no other, for a warpgroup: four warps, the first a
// multiple of four.
//
//   WGMMA: whether to use them. They require -arch=sm_90a.
//
// A product is 64 x 64 x 16 and is computed while the warps go on, until `warpgroup_wait`. A warp has 16 of the 64 rows
// of c, and of a if that is in registers, as fragments of mma.cuh. Matrices in shared memory are read from there by the
// tensor cores, without ldmatrix: they start at a row, a multiple of eight, of a panel of tile.cuh.
//
// Source: NVIDIA, PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Operation using wgmma.mma_async
// instruction": register fragments, shared memory layout (128-byte swizzle), matrix descriptor

#pragma once

#include "element.cuh"
#include "mma.cuh"
#include "reduce.cuh"

#if WGMMA

// A matrix in shared memory, as a descriptor; add n to move it by 16n bytes.
typedef unsigned long long matrix_t;

__device__ __forceinline__ matrix_t matrix_at(const void* start) {
#ifdef TALLOW_EMULATED
    return (uintptr_t)start / 16;
#else
    // The swizzle permutes chunks by bits 7 to 9 of the address, so panels start at multiples of 1024 bytes.
    constexpr matrix_t SWIZZLE_128 = 1ull << 62, APART = 1024 / 16;  // of groups of eight rows
    return SWIZZLE_128 | APART << 32 | APART << 16 | (unsigned)__cvta_generic_to_shared(start) / 16;
#endif
}

#ifdef TALLOW_EMULATED
namespace emulated {

inline unsigned pair(matrix_t matrix, int row, int column, int row_after, int column_after) {
    auto at = [&](int r, int c) {
        uintptr_t address = matrix * 16 + r * 128 + c * 2;
        return (unsigned)*(const unsigned short*)(address ^ address / 128 % 8 * 16);
    };
    return at(row, column) | at(row_after, column_after) << 16;
}

}  // namespace emulated
#else

template <class T> constexpr bool IS_F16 = false;
template <> constexpr bool IS_F16<f16> = true;

#define FOUR(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define SUMS FOUR(n), FOUR(n + 1), FOUR(n + 2), FOUR(n + 3), FOUR(n + 4), FOUR(n + 5), FOUR(n + 6), FOUR(n + 7)
#define MULTIPLY(TYPE, LEFT, ADD, TRANSPOSED)                                                                         \
    "{.reg .pred add; setp.ne.u32 add, " ADD ", 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE          \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
    "%30,%31}, " LEFT ", add, 1, 1, " TRANSPOSED ";}"
#endif

// c += a bᵀ, from column 8n of c, for 16 columns of a and b; or c = a bᵀ if not `add`.
template <class T, int Columns>
__device__ __forceinline__ void warpgroup_multiply_rows(float (&c)[Columns][4], int n, matrix_t a, matrix_t b,
                                                        bool add) {
#ifdef TALLOW_EMULATED
    int lane = threadIdx.x % WARP, row = threadIdx.x / WARP % 4 * 16 + lane / 4, k = lane % 4 * 2;
    unsigned left[4];
    for (int i = 0; i < 4; i++)
        left[i] = emulated::pair(a, row + i % 2 * 8, k + i / 2 * 8, row + i % 2 * 8, k + i / 2 * 8 + 1);
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 4; i++) c[n + j][i] = add ? c[n + j][i] : 0.0f;
        int column = j * 8 + lane / 4;
        multiply_add<T>(c[n + j], left, emulated::pair(b, column, k, column, k + 1),
                        emulated::pair(b, column, k + 8, column, k + 9));
    }
#else
    if constexpr (IS_F16<T>)
        asm volatile(MULTIPLY("f16", "%32, %33", "%34", "0, 0")
                     : SUMS
                     : "l"(a), "l"(b), "r"((int)add));
    else
        asm volatile(MULTIPLY("bf16", "%32, %33", "%34", "0, 0")
                     : SUMS
                     : "l"(a), "l"(b), "r"((int)add));
#endif
}

// c += a b, from column 8n of c, with a fragment of a, and 16 rows of b.
template <class T, int Columns>
__device__ __forceinline__ void warpgroup_multiply(float (&c)[Columns][4], int n, const unsigned (&a)[4], matrix_t b) {
#ifdef TALLOW_EMULATED
    int lane = threadIdx.x % WARP, k = lane % 4 * 2;
    for (int j = 0; j < 8; j++) {
        int column = j * 8 + lane / 4;
        multiply_add<T>(c[n + j], a, emulated::pair(b, k, column, k + 1, column),
                        emulated::pair(b, k + 8, column, k + 9, column));
    }
#else
    if constexpr (IS_F16<T>)
        asm volatile(MULTIPLY("f16", "{%32,%33,%34,%35}, %36", "1", "1")
                     : SUMS
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    else
        asm volatile(MULTIPLY("bf16", "{%32,%33,%34,%35}, %36", "1", "1")
                     : SUMS
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}

// Have these registers written before what follows, with which the compiler could otherwise exchange it.
template <int Count> __device__ __forceinline__ void settle(float (&c)[Count][4]) {
#ifndef TALLOW_EMULATED
#pragma unroll
    for (int n = 0; n < Count; n++) asm volatile("" : FOUR(n)::"memory");
#endif
}

template <int Count> __device__ __forceinline__ void settle(unsigned (&a)[Count][4]) {
#ifndef TALLOW_EMULATED
#pragma unroll
    for (int n = 0; n < Count; n++)
        asm volatile("" : "+r"(a[n][0]), "+r"(a[n][1]), "+r"(a[n][2]), "+r"(a[n][3])::"memory");
#endif
}

// Before products: the registers they use, which have been settled, are ready.
__device__ __forceinline__ void warpgroup_fence() {
#ifndef TALLOW_EMULATED
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

// Group the products since the last commit.
__device__ __forceinline__ void warpgroup_commit() {
#ifndef TALLOW_EMULATED
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// Wait until at most the last `Pending` groups are unfinished; c, a result of another, can then be used.
template <int Pending, int Columns> __device__ __forceinline__ void warpgroup_wait(float (&c)[Columns][4]) {
#ifndef TALLOW_EMULATED
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
#endif
    settle(c);
}

// Make the copies that this thread has waited for visible to products.
__device__ __forceinline__ void show_copies_to_products() {
#ifndef TALLOW_EMULATED
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
#endif
