// A step of gradient descent for many parameters, in place:
//
//   g = sign · grad + decay · p
//   b = momentum · b + undamped · g;  then g = b, or g + momentum · b with nesterov
//   p = p - lr · g
//
//   lists: p, grad, b; without momentum b is null
//   P: the element type of p and b;  G: that of grad. Halves are computed in float and rounded once.

#include "tensor_lists.cuh"

constexpr int N = 4;

struct Options {
    float sign, decay, momentum, undamped, lr, nesterov;
};

template <int M> __device__ __forceinline__ void descend(P* p, const G* grad, P* b, const Options& o) {
    Pack<P, M> ps = *(Pack<P, M>*)p, bs = ps;
    Pack<G, M> gs = *(const Pack<G, M>*)grad;
    if (b) bs = *(Pack<P, M>*)b;
#pragma unroll
    for (int j = 0; j < M; j++) {
        float value = to_float(ps.at[j]), g = o.sign * to_float(gs.at[j]) + o.decay * value;
        if (b) {
            float kept = o.momentum * to_float(bs.at[j]) + o.undamped * g;
            bs.at[j] = from_float<P>(kept);
            g = o.nesterov ? g + o.momentum * kept : kept;
        }
        ps.at[j] = from_float<P>(value - o.lr * g);
    }
    *(Pack<P, M>*)p = ps;
    if (b) *(Pack<P, M>*)b = bs;
}

extern "C" __global__ void __launch_bounds__(LIST_THREADS) sgd_steps(
    const __grid_constant__ TensorLists<3> lists, float sign, float decay, float momentum, float undamped, float lr,
    float nesterov) {
    Part part = part_of_block(lists);
    P *p = (P*)lists.at[0][part.tensor], *b = (P*)lists.at[2][part.tensor];
    const G* grad = (const G*)lists.at[1][part.tensor];
    Options o = {sign, decay, momentum, undamped, lr, nesterov};
    bool packed = aligned<N>(p) && aligned<N>(grad) && (!b || aligned<N>(b));
    index_t full = packed ? part.start + (part.end - part.start) / N * N : part.start;
#pragma unroll 2
    for (index_t at = part.start + threadIdx.x * N; at < full; at += LIST_THREADS * N)
        descend<N>(p + at, grad + at, b ? b + at : b, o);
    for (index_t at = full + threadIdx.x; at < part.end; at += LIST_THREADS)
        descend<1>(p + at, grad + at, b ? b + at : b, o);
}
