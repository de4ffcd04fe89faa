// y = x / sqrt(mean(x²) + eps) · weight, a block for a row.
//
//   x, y (rows, width) contiguous;  weight (width) or null
//   X: the element of x and y;  W: that of the weight

#include "element.cuh"
#include "reduce.cuh"

constexpr int N = 16 / sizeof(X);

extern "C" __global__ void rms_norm(const X* x, const W* weight, X* y, index_t width, float eps) {
    x += blockIdx.x * width;
    y += blockIdx.x * width;
    // The row is read twice, the second time from the cache; what does not fill packs is at its end.
    bool packed = aligned<N>(x) && aligned<N>(y) && (!weight || aligned<N>(weight));
    index_t full = packed ? width / N : 0;
    float sum = 0.0f;
    for (index_t i = threadIdx.x; i < full; i += blockDim.x) {
        Pack<X, N> pack = ((const Pack<X, N>*)x)[i];
#pragma unroll
        for (int j = 0; j < N; j++) sum += to_float(pack.at[j]) * to_float(pack.at[j]);
    }
    for (index_t i = full * N + threadIdx.x; i < width; i += blockDim.x) sum += to_float(x[i]) * to_float(x[i]);
    float scale = 1.0f / sqrtf(block_reduce<Add>(sum) / width + eps);

    for (index_t i = threadIdx.x; i < full; i += blockDim.x) {
        Pack<X, N> pack = ((const Pack<X, N>*)x)[i];
        Pack<W, N> factor;
        if (weight) factor = ((const Pack<W, N>*)weight)[i];
#pragma unroll
        for (int j = 0; j < N; j++) {
            float normal = to_float(pack.at[j]) * scale;
            pack.at[j] = from_float<X>(weight ? normal * to_float(factor.at[j]) : normal);
        }
        ((Pack<X, N>*)y)[i] = pack;
    }
    for (index_t i = full * N + threadIdx.x; i < width; i += blockDim.x) {
        float normal = to_float(x[i]) * scale;
        y[i] = from_float<X>(weight ? normal * to_float(weight[i]) : normal);
    }
}
