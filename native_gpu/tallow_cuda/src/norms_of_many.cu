// The norm of many arrays as one vector, in two launches, and their product with one number, in one launch.
//
//   square_sums   partial[before + block] = Σ x² of the elements of a block
//   root_of_sum   y[0] = √(Σ partial), by one block, always in the same order
//   scale         x = x · factor[0] · number; found[0] = 1 if a product is not finite
//
//   lists: x;  factor and found may be null;  X: the element type of x

#include "tensor_lists.cuh"
#include "reduce.cuh"

constexpr int N = 16 / sizeof(X);

extern "C" __global__ void __launch_bounds__(LIST_THREADS) square_sums(
    const __grid_constant__ TensorLists<1> lists, float* partial, index_t before) {
    Part part = part_of_block(lists);
    const X* x = (const X*)lists.at[0][part.tensor];
    index_t full = aligned<N>(x) ? part.start + (part.end - part.start) / N * N : part.start;
    float sum = 0.0f;
#pragma unroll 2
    for (index_t at = part.start + threadIdx.x * N; at < full; at += LIST_THREADS * N) {
        Pack<X, N> pack = *(const Pack<X, N>*)(x + at);
#pragma unroll
        for (int j = 0; j < N; j++) sum += to_float(pack.at[j]) * to_float(pack.at[j]);
    }
    for (index_t at = full + threadIdx.x; at < part.end; at += LIST_THREADS) sum += to_float(x[at]) * to_float(x[at]);
    sum = block_reduce<Add>(sum);
    if (threadIdx.x == 0) partial[before + blockIdx.x] = sum;
}

extern "C" __global__ void root_of_sum(const float* partial, index_t count, float* y) {
    float sum = 0.0f;
    for (index_t i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
    sum = block_reduce<Add>(sum);
    if (threadIdx.x == 0) *y = sqrtf(sum);
}

template <int M> __device__ __forceinline__ bool scale_pack(X* x, float factor) {
    Pack<X, M> pack = *(Pack<X, M>*)x;
    bool finite = true;
#pragma unroll
    for (int j = 0; j < M; j++) {
        pack.at[j] = from_float<X>(to_float(pack.at[j]) * factor);
        finite = finite && fabsf(to_float(pack.at[j])) <= 3.40282347e38f;
    }
    *(Pack<X, M>*)x = pack;
    return finite;
}

extern "C" __global__ void __launch_bounds__(LIST_THREADS) scale(
    const __grid_constant__ TensorLists<1> lists, const float* factor, float number, float* found) {
    Part part = part_of_block(lists);
    X* x = (X*)lists.at[0][part.tensor];
    if (factor) number *= *factor;
    index_t full = aligned<N>(x) ? part.start + (part.end - part.start) / N * N : part.start;
    bool finite = true;
#pragma unroll 2
    for (index_t at = part.start + threadIdx.x * N; at < full; at += LIST_THREADS * N)
        finite = scale_pack<N>(x + at, number) && finite;
    for (index_t at = full + threadIdx.x; at < part.end; at += LIST_THREADS)
        finite = scale_pack<1>(x + at, number) && finite;
    if (found && !finite) *found = 1.0f;  // all threads that write, write the same value
}
