// Weights read 16 bytes at a time: float, the halves, int8 and pairs of int4.

#pragma once

#include "element.cuh"

struct int8 {
    unsigned char bits;
};

struct int4x2 {  // two numbers from -8 to 7, stored as 0 to 15, the first in the lower half
    unsigned char bits;
};

typedef Pack<unsigned, 4> Words;

// Load 16 bytes, at a multiple of 16, that are not read again soon, without evicting data from the L1 cache. They must
// not change while the kernel runs.
__device__ __forceinline__ Words load_once(const void* p) {
    Words words;
#ifdef TALLOW_EMULATED
    words = *(const Words*)p;
#else
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(words.at[0]), "=r"(words.at[1]), "=r"(words.at[2]), "=r"(words.at[3])
        : "l"(p));
#endif
    return words;
}

// Convert a small number without the slow instruction: in 2²³ + x the last bits of the float are x.
__device__ __forceinline__ float small_number(unsigned x, float offset) {
    return __uint_as_float(0x4b000000u | x) - (8388608.0f + offset);
}

// The memory layout of a weight type: PER_LOAD weights in 16 bytes, unpacked STEP at a time.
template <class T> struct Weights {
    static constexpr int STEP = 8, PER_LOAD = 8;
    static constexpr bool QUANTIZED = false;
    __device__ static void unpack(const Words& words, int, float* out) {
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            T x;
            x.bits = (unsigned short)(words.at[i / 2] >> 16 * (i % 2));
            out[i] = to_float(x);
        }
    }
};

template <> struct Weights<float> {
    static constexpr int STEP = 4, PER_LOAD = 4;
    static constexpr bool QUANTIZED = false;
    __device__ static void unpack(const Words& words, int, float* out) {
#pragma unroll
        for (int i = 0; i < STEP; i++) out[i] = __uint_as_float(words.at[i]);
    }
};

template <> struct Weights<int8> {
    static constexpr int STEP = 8, PER_LOAD = 16;
    static constexpr bool QUANTIZED = true;
    __device__ static void unpack(const Words& words, int step, float* out) {
#pragma unroll
        for (int i = 0; i < STEP; i++)
            out[i] = small_number((words.at[2 * step + i / 4] >> 8 * (i % 4) & 255) ^ 128, 128.0f);
    }
};

template <> struct Weights<int4x2> {
    static constexpr int STEP = 8, PER_LOAD = 32;
    static constexpr bool QUANTIZED = true;
    __device__ static void unpack(const Words& words, int step, float* out) {
#pragma unroll
        for (int i = 0; i < STEP; i++) out[i] = small_number(words.at[step] >> 4 * i & 15, 8.0f);
    }
};
