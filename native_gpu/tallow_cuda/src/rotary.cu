// Rotary position embedding: each pair (p, q) of a head becomes (p cos - q sin, p sin + q cos).
//
//   x (batch, heads, T, K), its last axis contiguous, strides of the others in elements: a view of (batch, T, heads, K)
//   is read directly;  y (batch, heads, T, K) contiguous;  cos, sin (T, K/2) float, contiguous
//   X: the element type of x and y;  INTERLEAVED: 1 for the pairs (2i, 2i + 1), 0 for (i, i + K/2)
//
// A block is (lanes, positions) threads, grid (T / positions, heads, batch): the lanes share the row of a head.
//
// Source: Su et al. 2021, arXiv:2104.09864

#include "elementwise.cuh"

extern "C" __global__ void rotary(const X* x, const float* cos, const float* sin, X* y, index_t T, index_t K,
                                  index_t step_batch, index_t step_head, index_t step_position) {
    index_t t = (index_t)blockIdx.x * blockDim.y + threadIdx.y, pairs = K / 2;
    if (t >= T) return;
    x += blockIdx.z * step_batch + blockIdx.y * step_head + t * step_position;
    y += (((index_t)blockIdx.z * gridDim.y + blockIdx.y) * T + t) * K;
    cos += t * pairs;
    sin += t * pairs;
    constexpr int N = INTERLEAVED ? widest_pack<X>() / 2 : widest_pack<X>();  // pairs
    if (INTERLEAVED) {
        bool packed = all_aligned<2 * N>(x, y) && all_aligned<N>(cos, sin);
        each<N>(pairs, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
            auto c = load<N>(cos + i, n), s = load<N>(sin + i, n);
            auto a = load<2 * N>(x + 2 * i, 2 * n);
#pragma unroll
            for (int j = 0; j < N; j++) {
                float p = a.at[2 * j], q = a.at[2 * j + 1];
                a.at[2 * j] = p * c.at[j] - q * s.at[j];
                a.at[2 * j + 1] = p * s.at[j] + q * c.at[j];
            }
            store(y + 2 * i, a, 2 * n);
        });
    } else {
        bool packed = all_aligned<N>(x, x + pairs) && all_aligned<N>(y, y + pairs) && all_aligned<N>(cos, sin);
        each<N>(pairs, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
            auto c = load<N>(cos + i, n), s = load<N>(sin + i, n), p = load<N>(x + i, n), q = load<N>(x + pairs + i, n);
            auto first = p, second = q;
#pragma unroll
            for (int j = 0; j < N; j++) {
                first.at[j] = p.at[j] * c.at[j] - q.at[j] * s.at[j];
                second.at[j] = p.at[j] * s.at[j] + q.at[j] * c.at[j];
            }
            store(y + i, first, n);
            store(y + pairs + i, second, n);
        });
    }
}
