// y = x in another float dtype, rounded to nearest even: sixteen bytes of the wider dtype for each thread.
//
//   x, y (size) contiguous;  X, Y: their elements

#include "element.cuh"

constexpr int N = 16 / (sizeof(X) > sizeof(Y) ? sizeof(X) : sizeof(Y));

extern "C" __global__ void convert(const X* x, Y* y, index_t size) {
    index_t at = (blockIdx.x * (index_t)blockDim.x + threadIdx.x) * N;
    if (at + N <= size && aligned<N>(x) && aligned<N>(y)) {
        Pack<X, N> from = *(const Pack<X, N>*)(x + at);
        Pack<Y, N> to;
#pragma unroll
        for (int j = 0; j < N; j++) to.at[j] = from_float<Y>(to_float(from.at[j]));
        *(Pack<Y, N>*)(y + at) = to;
    } else {
        for (index_t i = at; i < at + N && i < size; i++) y[i] = from_float<Y>(to_float(x[i]));
    }
}
