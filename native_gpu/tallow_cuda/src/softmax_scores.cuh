// From products of queries and keys to attention weights, shared by the forward and backward kernels.
//
//   ADDED: whether the product is scaled, and a mask of element type M added, before the maximum is taken. Otherwise
//   the scale, which is then positive, is part of `factor`, the only factor in the exponent.

#pragma once

#include "element.cuh"
#include "exp2.cuh"
#include "reduce.cuh"

// Converts a product to its weight exp2((score - shift) · factor - log_sum).
struct Scores {
    const M* mask;  // of this batch and head, or null
    int by_query, by_key, queries, keys;
    bool causal;  // query i sees keys 0 to i
    float scale;

    __device__ __forceinline__ float factor() const {
        constexpr float LOG2_E = 1.44269504f;
        return ADDED ? LOG2_E : scale * LOG2_E;
    }

    __device__ __forceinline__ float weight(float score, float shift, float log_sum) const {
        // With a mask, subtract first: its values may overflow when multiplied by the factor.
        if (ADDED) return exp2_fast((score - shift) * factor() - log_sum);
        return exp2_fast(score * factor() - (shift * factor() + log_sum));
    }

    // Compute the scores of a tile, given its first query and key; its columns are the queries if Transposed.
    template <bool Transposed, int Tiles, int Columns>
    __device__ __forceinline__ void from_products(float (&s)[Tiles][Columns][4], int query, int key) const {
        int last = key + (Transposed ? Tiles * 16 : Columns * 8) - 1;
        bool at_edge = last >= keys || (causal && last > query);
        if (!ADDED && !at_edge) return;
        int row = threadIdx.x % WARP / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
        for (int m = 0; m < Tiles; m++)
#pragma unroll
            for (int n = 0; n < Columns; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int r = m * 16 + row + i / 2 * 8, c = n * 8 + column + i % 2;
                    int q = query + (Transposed ? c : r), k = key + (Transposed ? r : c);
                    float& score = s[m][n][i];
                    if (ADDED) {
                        score *= scale;
                        if (mask && q < queries && k < keys) score += to_float(mask[q * by_query + k * by_key]);
                    }
                    if (at_edge && (k >= keys || (causal && k > q))) score = minus_infinity();
                }
    }
};
