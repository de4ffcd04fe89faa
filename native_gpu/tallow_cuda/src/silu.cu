// silu(x) = x σ(x),  σ(x) = 1 / (1 + exp(-x)), and its gradient.
//
//   x, y, g, dx (size) contiguous
//   X: the element type of x and y;  G: that of g and dx
//
// Source: Elfwing et al. 2017, arXiv:1702.03118

#include "gates.cuh"

extern "C" __global__ void silu(const X* x, X* y, index_t size) {
    map(size, [](float x) { return x * sigmoid(x); }, y, x);
}

extern "C" __global__ void silu_backward(const X* x, const G* g, G* dx, index_t size) {
    map(size, [](float x, float g) { return g * silu_slope(x, sigmoid(x)); }, dx, x, g);
}
