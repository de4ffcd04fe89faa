// Iterate over the elements of contiguous arrays, several at a time if a thread can read 16 bytes at once.
//
//   map(size, f, y, x1, x2, ...)                y[i] = f(x1[i], x2[i], ...), by all threads of the grid
//   each<N>(size, packed, thread, threads, f)   the same for any work: f(i, n) processes n elements from i

#pragma once

#include "element.cuh"

// Every element of `size` is visited by one of the threads, N together if they are `packed`: n is N, or 1 for the rest.
// Adjacent threads of a warp visit adjacent elements. Both calls of f are inlined, so that n is a constant in them; a
// lambda with an `auto` parameter, which would make it a constant by type, is a host function to NVRTC.
template <int N, class F>
__device__ __forceinline__ void each(index_t size, bool packed, index_t thread, index_t threads, F f) {
    index_t full = packed ? size / N * N : 0;
    for (index_t i = thread * N; i < full; i += threads * N) f(i, N);
    for (index_t i = full + thread; i < size; i += threads) f(i, 1);
}

template <int N, class T> __device__ __forceinline__ Pack<float, N> to_floats(Pack<T, N> pack) {
    Pack<float, N> values;
#pragma unroll
    for (int j = 0; j < N; j++) values.at[j] = to_float(pack.at[j]);
    return values;
}

// Load n elements, N together or one by one, followed by zeros.
template <int N, class T> __device__ __forceinline__ Pack<float, N> load(const T* from, int n) {
    if (n == N) return to_floats(*(const Pack<T, N>*)from);
    Pack<float, N> values;
#pragma unroll
    for (int j = 0; j < N; j++) values.at[j] = j < n ? to_float(from[j]) : 0.0f;
    return values;
}

template <int N, class T> __device__ __forceinline__ void store(T* to, const Pack<float, N>& values, int n) {
    if (n == N) {
        Pack<T, N> pack;
#pragma unroll
        for (int j = 0; j < N; j++) pack.at[j] = from_float<T>(values.at[j]);
        *(Pack<T, N>*)to = pack;
    } else {
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < n) to[j] = from_float<T>(values.at[j]);
    }
}

// Return the number of elements in 16 bytes of the widest type; of the other types a thread reads fewer bytes at once.
template <class... T> __device__ constexpr int widest_pack() {
    int widest = 1;
    const int sizes[] = {(int)sizeof(T)...};
    for (int size : sizes) widest = size > widest ? size : widest;
    return 16 / widest;
}

template <int N, class... T> __device__ __forceinline__ bool all_aligned(const T*... p) {
    return (aligned<N>(p) && ...);
}

// Apply f to each element of the packs.
template <int N, class F, class... Packs>
__device__ __forceinline__ Pack<float, N> combine(F f, const Pack<float, N>& first, const Packs&... others) {
    Pack<float, N> values;
#pragma unroll
    for (int j = 0; j < N; j++) values.at[j] = f(first.at[j], others.at[j]...);
    return values;
}

__device__ __forceinline__ index_t thread_of_grid() { return (index_t)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __forceinline__ index_t threads_of_grid() { return (index_t)gridDim.x * blockDim.x; }

// y may alias an x: each element is read and written by the same thread.
template <class F, class T, class... From>
__device__ __forceinline__ void map(index_t size, F f, T* y, const From*... x) {
    constexpr int N = widest_pack<T, From...>();
    each<N>(size, all_aligned<N>(y, x...), thread_of_grid(), threads_of_grid(),
            [&](index_t i, int n) { store(y + i, combine<N>(f, load<N>(x + i, n)...), n); });
}
