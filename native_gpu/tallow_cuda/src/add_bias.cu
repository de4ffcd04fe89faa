// y += bias, with one block per row of y.
//
//   add_bias: y (rows, width) contiguous, bias (width): to every row
//   add_bias_to_channels: y (rows, width) contiguous, bias (channels): bias[r % channels] to row r
//   X, B: the element types of y and bias

#include "element.cuh"

constexpr int N = 16 / sizeof(X);

extern "C" __global__ void add_bias(X* y, const B* bias, index_t width) {
    y += blockIdx.x * width;
    index_t full = aligned<N>(y) && aligned<N>(bias) ? width / N : 0;
    for (index_t i = threadIdx.x; i < full; i += blockDim.x) {
        Pack<X, N> pack = ((const Pack<X, N>*)y)[i];
        Pack<B, N> added = ((const Pack<B, N>*)bias)[i];
#pragma unroll
        for (int j = 0; j < N; j++) pack.at[j] = from_float<X>(to_float(pack.at[j]) + to_float(added.at[j]));
        ((Pack<X, N>*)y)[i] = pack;
    }
    for (index_t i = full * N + threadIdx.x; i < width; i += blockDim.x)
        y[i] = from_float<X>(to_float(y[i]) + to_float(bias[i]));
}

extern "C" __global__ void add_bias_to_channels(X* y, const B* bias, index_t channels, index_t width) {
    y += blockIdx.x * width;
    float added = to_float(bias[blockIdx.x % channels]);
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) y[i] = from_float<X>(to_float(y[i]) + added);
}
