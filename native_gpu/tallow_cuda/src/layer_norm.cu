// y = (x - mean(x)) / sqrt(var(x) + eps) ⊙ weight + bias over rows, and its gradients; see normalization.cuh.
//
// Source: Ba, Kiros & Hinton 2016, arXiv:1607.06450

#include "normalization.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    layer_norm(const X* x, const W* weight, const W* bias, X* y, index_t rows, index_t width, float eps) {
    normalize<true>(x, weight, bias, y, rows, width, eps);
}

extern "C" __global__ void __launch_bounds__(1024) layer_norm_backward(const G* g, const X* x, const W* weight, G* dx,
                                                                       float* partial, index_t rows, index_t width,
                                                                       float eps) {
    normalize_backward<true>(g, x, weight, dx, partial, rows, width, eps);
}
