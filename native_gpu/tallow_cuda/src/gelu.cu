// gelu(x) = x Φ(x) with the normal distribution function Φ, or its tanh approximation; gelu(a) b; and the gradients.
//
//   x, a, b, y, g, dx, da, db (size) contiguous
//   X: the element type of x, a, b and y;  G: that of gradients;  TANH: 1 for the approximation, else 0
//
//   exact:  Φ(x) = erfc(-x / √2) / 2,      slope Φ(x) + x φ(x)
//   tanh:   (1 + tanh u) / 2 = σ(2u),  u = √(2/π) (x + 0.044715 x³),  slope σ + 2 x σ (1 - σ) u'
//
// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415

#include "gates.cuh"

constexpr float TWICE_SQRT_2_PI = 1.5957691216057308f;  // 2 √(2/π)
constexpr float CUBIC = 0.044715f;

// Return Φ(x), or σ(2u).
__device__ __forceinline__ float share(float x) {
    if (TANH) return sigmoid(TWICE_SQRT_2_PI * x * (1.0f + CUBIC * x * x));
    return 0.5f * erfcf(x * -0.7071067811865476f);
}

// Return the derivative of gelu at x, where s = share(x).
__device__ __forceinline__ float slope(float x, float s) {
    if (TANH) return s + x * s * (1.0f - s) * TWICE_SQRT_2_PI * (1.0f + 3.0f * CUBIC * x * x);
    return s + x * 0.3989422804014327f * expf(-0.5f * x * x);
}

extern "C" __global__ void gelu(const X* x, X* y, index_t size) {
    map(size, [](float x) { return x * share(x); }, y, x);
}

extern "C" __global__ void gelu_backward(const X* x, const G* g, G* dx, index_t size) {
    map(size, [](float x, float g) { return g * slope(x, share(x)); }, dx, x, g);
}

extern "C" __global__ void gelu_mul(const X* a, const X* b, X* y, index_t size) {
    map(size, [](float a, float b) { return a * share(a) * b; }, y, a, b);
}

extern "C" __global__ void gelu_mul_backward(const X* a, const X* b, const G* g, G* da, G* db, index_t size) {
    gated_backward(a, b, g, da, db, size, [](float x) {
        float s = share(x);
        return Bent{x * s, slope(x, s)};
    });
}
