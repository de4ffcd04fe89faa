// A step of Adam (Kingma & Ba 2014, arXiv:1412.6980, algorithm 1) for many parameters, in place:
//
//   p = p · (1 - lr · pull)                              decoupled weight decay
//   g = sign · grad + decay · p
//   m = m + w1 · (g - m);  v = beta2 · v + w2 · g²;  top = max(top, v)
//   p = p - lr / bias1 · m / (√t / √bias2 + eps)         t is top, or v without top;  bias = 1 - betaᵗ after t steps
//
//   lists: p, grad, m, v, top, steps; tops and steps may be null
//   steps: if not null, step counts on the device, from which the biases are computed, so that a captured step
//          stays correct
//   there: lr on the device, or null
//   P: the element type of p, m, v, top;  G: that of grad. Halves are computed in float and rounded once.

#include "tensor_lists.cuh"

constexpr int N = 4;

struct Options {
    float sign, decay, pull, w1, beta2, w2, lr, bias1, bias2, eps;
};

struct Moments {
    float p, m, v, top;
};

__device__ __forceinline__ Moments advance(Moments s, float grad, bool has_top, const Options& o, float step, float scale) {
    s.p *= 1.0f - o.lr * o.pull;
    float g = o.sign * grad + o.decay * s.p;
    s.m += o.w1 * (g - s.m);
    s.v = o.beta2 * s.v + o.w2 * g * g;
    s.top = has_top && s.top >= s.v ? s.top : s.v;  // keeps NaN
    s.p -= step * s.m / (sqrtf(s.top) * scale + o.eps);
    return s;
}

template <int M> __device__ __forceinline__ void advance_pack(
    P* p, const G* grad, P* m, P* v, P* top, const Options& o, float step, float scale) {
    Pack<P, M> ps = *(Pack<P, M>*)p, ms = *(Pack<P, M>*)m, vs = *(Pack<P, M>*)v, tops = vs;
    Pack<G, M> gs = *(const Pack<G, M>*)grad;
    if (top) tops = *(Pack<P, M>*)top;
#pragma unroll
    for (int j = 0; j < M; j++) {
        Moments s = {to_float(ps.at[j]), to_float(ms.at[j]), to_float(vs.at[j]), to_float(tops.at[j])};
        s = advance(s, to_float(gs.at[j]), top != nullptr, o, step, scale);
        ps.at[j] = from_float<P>(s.p);
        ms.at[j] = from_float<P>(s.m);
        vs.at[j] = from_float<P>(s.v);
        tops.at[j] = from_float<P>(s.top);
    }
    *(Pack<P, M>*)p = ps;
    *(Pack<P, M>*)m = ms;
    *(Pack<P, M>*)v = vs;
    if (top) *(Pack<P, M>*)top = tops;
}

extern "C" __global__ void __launch_bounds__(LIST_THREADS) adam_steps(
    const __grid_constant__ TensorLists<6> lists, float sign, float decay, float pull, float w1, float beta2, float w2,
    float lr, float bias1, float bias2, float eps, float log_beta1, float log_beta2, const float* there) {
    Part part = part_of_block(lists);
    int i = part.tensor;
    P *p = (P*)lists.at[0][i], *m = (P*)lists.at[2][i], *v = (P*)lists.at[3][i], *top = (P*)lists.at[4][i];
    const G* grad = (const G*)lists.at[1][i];
    const float* steps = (const float*)lists.at[5][i];
    if (there) lr = *there;
    if (steps) {
        bias1 = -expm1f(*steps * log_beta1);  // 1 - beta would lose half of its digits
        bias2 = -expm1f(*steps * log_beta2);
    }
    Options o = {sign, decay, pull, w1, beta2, w2, lr, bias1, bias2, eps};
    float step = lr / bias1, scale = rsqrtf(bias2);
    bool packed = aligned<N>(p) && aligned<N>(grad) && aligned<N>(m) && aligned<N>(v) && (!top || aligned<N>(top));
    index_t full = packed ? part.start + (part.end - part.start) / N * N : part.start;
#pragma unroll 2
    for (index_t at = part.start + threadIdx.x * N; at < full; at += LIST_THREADS * N)
        advance_pack<N>(p + at, grad + at, m + at, v + at, top ? top + at : top, o, step, scale);
    for (index_t at = full + threadIdx.x; at < part.end; at += LIST_THREADS)
        advance_pack<1>(p + at, grad + at, m + at, v + at, top ? top + at : top, o, step, scale);
}

// Increment each count. A list of counts is a list of one-element arrays, so each block has one count.
extern "C" __global__ void count_steps(const __grid_constant__ TensorLists<1> lists) {
    if (threadIdx.x == 0) *(float*)lists.at[0][part_of_block(lists).tensor] += 1.0f;
}
