// y = silu(a) b, the gate of SwiGLU, and its gradients.
//
//   a, b, y, g, da, db (size) contiguous
//   X: the element type of a, b and y;  G: that of g, da and db
//
// Source: Shazeer 2020, arXiv:2002.05202

#include "gates.cuh"

extern "C" __global__ void silu_mul(const X* a, const X* b, X* y, index_t size) {
    map(size, [](float a, float b) { return a * sigmoid(a) * b; }, y, a, b);
}

extern "C" __global__ void silu_mul_backward(const X* a, const X* b, const G* g, G* da, G* db, index_t size) {
    gated_backward(a, b, g, da, db, size, [](float x) {
        float s = sigmoid(x);
        return Bent{x * s, silu_slope(x, s)};
    });
}
