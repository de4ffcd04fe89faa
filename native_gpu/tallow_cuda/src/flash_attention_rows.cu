// Prepare the backward pass of attention: for each query its gradient in X, and a record of 16 bytes,
//
//   {shift, log_sum, delta, 0},  delta = Σ_e g y
//
//   g: gradient of the output, (batch, heads, queries, width), given strides of the first three axes
//   y, stats: from flash_attention.cu, y with strides
//   rounded: g in X, contiguous;  records: (batch, heads, queries, 4), contiguous
//   width: a multiple of 8, at most 128; rows of g and y at multiples of 16 bytes
//   G: element type of g, float or X;  X: that of y, f16 or bf16
//
// One warp per query. This reads g in float32 only once, instead of in every block of keys and queries.

#include "element.cuh"
#include "reduce.cuh"

constexpr int N = 4;  // 32 lanes have 128 elements

extern "C" __global__ void flash_attention_rows(const G* g, const X* y, const float* stats, X* rounded, float* records,
                                                index_t heads, index_t queries, index_t width, index_t rows,
                                                index_t g_by_batch, index_t g_by_head, index_t g_by_row,
                                                index_t y_by_batch, index_t y_by_head, index_t y_by_row) {
    index_t row = (index_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
    if (row >= rows) return;  // uniform across a warp
    index_t query = row % queries, head = row / queries % heads, batch = row / queries / heads;
    g += batch * g_by_batch + head * g_by_head + query * g_by_row;
    y += batch * y_by_batch + head * y_by_head + query * y_by_row;
    int at = threadIdx.x % WARP * N;
    float delta = 0.0f;
    if (at < width) {
        Pack<G, N> given = *(const Pack<G, N>*)(g + at);
        Pack<X, N> value = *(const Pack<X, N>*)(y + at), kept;
#pragma unroll
        for (int i = 0; i < N; i++) {
            kept.at[i] = from_float<X>(to_float(given.at[i]));
            delta += to_float(kept.at[i]) * to_float(value.at[i]);
        }
        *(Pack<X, N>*)(rounded + row * width + at) = kept;
    }
    delta = warp_reduce<Add>(delta);
    if (at == 0) *(Pack<float, 4>*)(records + row * 4) = {stats[row * 2], stats[row * 2 + 1], delta, 0.0f};
}
