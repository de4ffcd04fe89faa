// y = silu(a) b, the gate of SwiGLU, and its gradients.
//
//   a, b, y, g, da, db (size) contiguous
//   X: the element of a, b and y;  G: that of g, da and db
//
// Source: Shazeer 2020, arXiv:2002.05202

#include "gates.cuh"

extern "C" __global__ void silu_mul(const X* a, const X* b, X* y, index_t size) {
    map(size, [](float a, float b) { return a * sigmoid(a) * b; }, y, a, b);
}

// One pass for both: what is read is most of the work.
extern "C" __global__ void silu_mul_backward(const X* a, const X* b, const G* g, G* da, G* db, index_t size) {
    constexpr int N = widest_pack<G, X>();
    each<N>(size, all_aligned<N>(g, a, b, da, db), thread_of_grid(), threads_of_grid(), [&](index_t i, int n) {
        auto slope = load<N>(g + i, n), gate = load<N>(a + i, n), other = load<N>(b + i, n);
#pragma unroll
        for (int j = 0; j < N; j++) {
            float x = gate.at[j], s = sigmoid(x);
            gate.at[j] = slope.at[j] * other.at[j] * silu_slope(x, s);
            other.at[j] = slope.at[j] * x * s;
        }
        store(da + i, gate, n);
        store(db + i, other, n);
    });
}
