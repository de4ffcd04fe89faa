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

// Convert the elements of 16 bytes.
template <class T> __device__ __forceinline__ void unpack(const Words& words, float* out) {
    const Pack<T, 16 / sizeof(T)>& pack = *(const Pack<T, 16 / sizeof(T)>*)&words;
#pragma unroll
    for (int i = 0; i < 16 / sizeof(T); i++) out[i] = to_float(pack.at[i]);
}

// Quantized weights as f16: pair(word, i) has elements i and i + PAIRS of the 2 · PAIRS in a word, plus OFFSET, in units of
// 2^-24, the smallest number: so they need no conversion. Those of an odd i are `ODD` times as large.
template <class T> struct Codes;

template <> struct Codes<int4x2> {
    static constexpr int PAIRS = 4;
    static constexpr float OFFSET = 8.0f, ODD = 16.0f;
    __device__ static unsigned pair(unsigned word, int i) {
        return word >> i / 2 * 8 & (i % 2 ? 0x00f000f0u : 0x000f000fu);
    }
};

template <> struct Codes<int8> {
    static constexpr int PAIRS = 2;
    static constexpr float OFFSET = 128.0f, ODD = 1.0f;
    __device__ static unsigned pair(unsigned word, int i) { return (word ^ 0x80808080u) >> 8 * i & 0x00ff00ffu; }
};
