// Element types of tensors: float, and the sixteen-bit floats as bit patterns. Kernels compute in float.
//
// No CUDA headers are needed: NVRTC alone compiles the kernels. CuPy compiles with -ftz=true: in arithmetic, float and
// bf16 below 2^-126 count as zero, as operands and as results; f16 values converted to float are never that small. The
// stated error bounds of kernels hold above that.

#pragma once

struct f16 {
    unsigned short bits;
};

struct bf16 {
    unsigned short bits;
};

__device__ __forceinline__ float to_float(float x) { return x; }

__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

__device__ __forceinline__ float to_float(f16 x) {
#ifdef TALLOW_EMULATED
    return emulated::float_of_half(x.bits);
#else
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
#endif
}

// from_float<T>(x): x rounded to T, to nearest even.
template <class T> __device__ T from_float(float x);

template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }

template <> __device__ __forceinline__ f16 from_float<f16>(float x) {
    f16 y;
#ifdef TALLOW_EMULATED
    y.bits = emulated::half_of_float(x);
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#endif
    return y;
}

template <> __device__ __forceinline__ bf16 from_float<bf16>(float x) {
    bf16 y;
#if !defined(TALLOW_EMULATED) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
    unsigned bits = __float_as_uint(x);
    if (x != x)
        y.bits = 0x7fff;  // rounding could turn a NaN into an infinity
    else
        y.bits = (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
    return y;
}

// N elements that are read and written at once, or 16 bytes at a time, the maximum for a thread.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
    T at[N];
};

typedef long long index_t;  // type of element counts and indices

// Return whether N elements from p may be read as a Pack.
template <int N, class T> __device__ __forceinline__ bool aligned(const T* p) {
    return (unsigned long long)p % alignof(Pack<T, N>) == 0;
}
