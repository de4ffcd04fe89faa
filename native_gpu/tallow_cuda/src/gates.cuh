// Gated units, gate(a) ⊙ b, and parts of two gates.

#pragma once

#include "elementwise.cuh"

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// Return the derivative of silu at x, where s = sigmoid(x).
__device__ __forceinline__ float silu_slope(float x, float s) { return s * (1.0f + x * (1.0f - s)); }

// The value of a gate at a number, and its slope there.
struct Bent {
    float value, slope;
};

// da = g ⊙ b ⊙ gate'(a),  db = g ⊙ gate(a),  in one pass, because reading is most of the work.
template <class Gate>
__device__ __forceinline__ void gated_backward(const X* a, const X* b, const G* g, G* da, G* db, index_t size,
                                               Gate gate) {
    constexpr int N = widest_pack<G, X>();
    each<N>(size, all_aligned<N>(a, b) && all_aligned<N>(g, da, db), thread_of_grid(), threads_of_grid(),
            [&](index_t i, int n) {
                auto first = load<N>(a + i, n), second = load<N>(b + i, n), slope = load<N>(g + i, n);
#pragma unroll
                for (int j = 0; j < N; j++) {
                    Bent bent = gate(first.at[j]);
                    first.at[j] = slope.at[j] * second.at[j] * bent.slope;
                    second.at[j] = slope.at[j] * bent.value;
                }
                store(da + i, first, n);
                store(db + i, second, n);
            });
}
