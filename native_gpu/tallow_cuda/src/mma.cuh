// Products of small matrices on tensor cores, for compute capability 8.0 and later, in f16 also for 7.5. A warp computes
// one together, and each of its lanes holds a part ("fragment") of every matrix. All 32 lanes call each function together.
//
// Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "ldmatrix". An unsigned holds two sixteen-bit floats, the
// first in its lower half. With g = lane / 4 and t = lane % 4:
//
//   a (16 x 16)   a[0] (g, 2t..)   a[1] (g + 8, 2t..)   a[2] (g, 2t + 8..)   a[3] (g + 8, 2t + 8..)
//   b (16 x 8)    b[0] (2t.., g)   b[1] (2t + 8.., g)
//   c (16 x 8)    c[0], c[1] (g, 2t..)   c[2], c[3] (g + 8, 2t..)

#pragma once

#include "element.cuh"

// Round two floats, and pack them.
template <class T> __device__ unsigned pack(float first, float second);

template <> __device__ __forceinline__ unsigned pack<f16>(float first, float second) {
#ifdef TALLOW_EMULATED
    return from_float<f16>(first).bits | (unsigned)from_float<f16>(second).bits << 16;
#else
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
#endif
}

template <> __device__ __forceinline__ unsigned pack<bf16>(float first, float second) {
#ifdef TALLOW_EMULATED
    return from_float<bf16>(first).bits | (unsigned)from_float<bf16>(second).bits << 16;
#else
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
#endif
}

#ifdef TALLOW_EMULATED
namespace emulated {

template <class T> void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    struct Shown {
        T a[4][2], b[2][2];
    } shown;
    memcpy(shown.a, a, sizeof shown.a);
    memcpy(shown.b[0], &b0, 4);
    memcpy(shown.b[1], &b1, 4);
    int lane = current->number % WARP_SIZE;
    exchange(&shown, sizeof shown, [&](Warp warp) {
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            for (int k = 0; k < 16; k++) {
                const Shown& of_row = *(const Shown*)warp[row % 8 * 4 + k % 8 / 2];
                const Shown& of_column = *(const Shown*)warp[column * 4 + k % 8 / 2];
                c[i] += to_float(of_row.a[row / 8 + k / 8 * 2][k % 2]) * to_float(of_column.b[k / 8][k % 2]);
            }
        }
    });
}

inline void load_matrices(unsigned (&r)[4], const void* row, bool transposed) {
    if ((uintptr_t)row % 16) fail("a row of ldmatrix is not aligned");
    int lane = current->number % WARP_SIZE;
    exchange(&row, sizeof row, [&](Warp warp) {
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 2; j++) {
                int at_row = transposed ? lane % 4 * 2 + j : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + j;
                const unsigned short* from;
                memcpy(&from, warp[i * 8 + at_row], sizeof from);
                memcpy((unsigned short*)&r[i] + j, from + column, 2);
            }
    });
}

}  // namespace emulated
#endif

// c += a b
template <class T>
__device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);

template <>
__device__ __forceinline__ void multiply_add<f16>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef TALLOW_EMULATED
    emulated::multiply_add<f16>(c, a, b0, b1);
#elif __CUDA_ARCH__ < 800  // two products of half the depth
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

template <>
__device__ __forceinline__ void multiply_add<bf16>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef TALLOW_EMULATED
    emulated::multiply_add<bf16>(c, a, b0, b1);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Load four matrices of 8 x 8 from shared memory. Lane i passes the address of row i % 8 of matrix i / 8, a multiple of
// 16 bytes; r[m] receives elements (g, 2t..) of matrix m.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void* row) {
#ifdef TALLOW_EMULATED
    emulated::load_matrices(r, row, false);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#endif
}

// Load their transposes: r[m] receives elements (2t.., g) of matrix m.
__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const void* row) {
#ifdef TALLOW_EMULATED
    emulated::load_matrices(r, row, true);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#endif
}
