// y = x / sqrt(mean(x²) + eps) ⊙ weight over rows, and its gradients; see normalization.cuh.
//
// Source: Zhang & Sennrich 2019, arXiv:1910.07467

#include "normalization.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(const X* x, const W* weight, X* y, index_t rows, index_t width, float eps) {
    normalize<false>(x, weight, (const W*)nullptr, y, rows, width, eps);
}

extern "C" __global__ void __launch_bounds__(1024) rms_norm_backward(const G* g, const X* x, const W* weight, G* dx,
                                                                     float* partial, index_t rows, index_t width,
                                                                     float eps) {
    normalize_backward<false>(g, x, weight, dx, partial, rows, width, eps);
}
