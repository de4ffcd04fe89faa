// y = softmax(q kᵀ · scale) v for one query position. The goal is to read each key and value once, at full bandwidth.
//
//   q, y (batch, heads, width) contiguous, elements Q
//   k, v (batch, heads / groups, keys, width) with given strides in elements, rows at multiples of 16 bytes: elements X
//   places: null, or in device memory, so that a captured graph works with a growing cache: for each row of the batch
//           its row of k and v, and the last and the first key to attend to; at or beyond `keys` count as the last one
//   WIDTH: the width, padded so that LANES is a power of 2 up to 32;  HEADS: heads per block, at most `groups`
//
// attention_decode: a block has HEADS query heads that share a key/value head, and one of `splits` parts of
// the keys, so that there are enough blocks with few heads. LANES threads share a key, 16 bytes each; each team keeps its own
// maxima and sums, which are combined at the end. With one split, the result is y; otherwise parts (batch, heads,
// splits, width), in float32, and tops (batch, heads, splits, 2), their maxima and sums.
// attention_combine: computes y from these, with one block per head.
//
// Source: Dao et al. 2023, "Flash-Decoding for long-context inference"

#include "element.cuh"
#include "exp2.cuh"
#include "memory.cuh"
#include "reduce.cuh"

constexpr int N = 16 / sizeof(X), LANES = WIDTH / N, WARPS = 4, THREADS = WARPS * WARP, TEAMS = THREADS / LANES;
constexpr int AT_ONCE = 4;  // keys per team whose loads are in flight at once

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_decode(const Q* q, const X* k, const X* v, const index_t* places, Q* y, float* parts, float* tops,
                     index_t heads, index_t groups, index_t keys, index_t width, index_t k_by_batch, index_t k_by_head,
                     index_t k_by_row, index_t v_by_batch, index_t v_by_head, index_t v_by_row, float scale) {
    constexpr float LOG2_E = 1.44269504f;
    int blocks = (groups + HEADS - 1) / HEADS;  // that share a key/value head
    int kv_head = blockIdx.y / blocks, first = kv_head * groups + blockIdx.y % blocks * HEADS;
    int present = min((int)groups - (int)(blockIdx.y % blocks) * HEADS, HEADS);
    int lane = threadIdx.x % LANES, warp = threadIdx.x / WARP, at = lane * N;
    index_t head = (index_t)blockIdx.z * heads + first;
    index_t of_cache = blockIdx.z, from = 0;

    start_next_kernel();
    wait_for_previous_kernels();
    if (places) {
        const index_t* place = places + 3 * blockIdx.z;
        of_cache = place[0], keys = min(keys, place[1] + 1), from = place[2];
    }
    k += of_cache * k_by_batch + kv_head * k_by_head + at;
    v += of_cache * v_by_batch + kv_head * v_by_head + at;
    index_t span = (keys - from + gridDim.x - 1) / gridDim.x, start = from + blockIdx.x * span;
    index_t stop = min(start + span, keys);
    float query[HEADS][N], sum[HEADS][N], top[HEADS], weights[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        top[h] = minus_infinity();
        weights[h] = 0.0f;
#pragma unroll
        for (int i = 0; i < N; i++) {
            bool there = h < present && at + i < width;
            query[h][i] = there ? to_float(q[(head + h) * width + at + i]) * (scale * LOG2_E) : 0.0f;
            sum[h][i] = 0.0f;
        }
    }
    for (index_t base = start; base < stop; base += TEAMS * AT_ONCE) {  // uniform: lanes exchange data
        Pack<X, N> key[AT_ONCE], value[AT_ONCE];
        bool there[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            index_t row = base + u * TEAMS + threadIdx.x / LANES;
            there[u] = row < stop;
            key[u] = value[u] = Pack<X, N>();
            if (there[u] && at < width) {
                key[u] = *(const Pack<X, N>*)(k + row * k_by_row);
                value[u] = *(const Pack<X, N>*)(v + row * v_by_row);
            }
        }
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float score[AT_ONCE], highest = top[h];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                score[u] = 0.0f;
#pragma unroll
                for (int i = 0; i < N; i++) score[u] += query[h][i] * to_float(key[u].at[i]);
#pragma unroll
                for (int step = 1; step < LANES; step *= 2) score[u] += __shfl_xor_sync(0xffffffffu, score[u], step);
                if (!there[u]) score[u] = minus_infinity();
                highest = fmaxf(highest, score[u]);
            }
            float shift = highest == minus_infinity() ? 0.0f : highest, shrink = exp2_fast(top[h] - shift);
            top[h] = highest;
            weights[h] *= shrink;
#pragma unroll
            for (int i = 0; i < N; i++) sum[h][i] *= shrink;
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                float weight = exp2_fast(score[u] - shift);
                weights[h] += weight;
#pragma unroll
                for (int i = 0; i < N; i++) sum[h][i] += weight * to_float(value[u].at[i]);
            }
        }
    }

    // Combine the teams of a warp, then the warps.
    __shared__ float of_warp[WARPS][HEADS][WIDTH], top_of_warp[WARPS][HEADS], weights_of_warp[WARPS][HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        float highest = top[h];
#pragma unroll
        for (int step = LANES; step < WARP; step *= 2)
            highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, step));
        float shrink = highest == minus_infinity() ? 0.0f : exp2_fast(top[h] - highest);
        weights[h] *= shrink;
#pragma unroll
        for (int i = 0; i < N; i++) sum[h][i] *= shrink;
#pragma unroll
        for (int step = LANES; step < WARP; step *= 2) {
            weights[h] += __shfl_xor_sync(0xffffffffu, weights[h], step);
#pragma unroll
            for (int i = 0; i < N; i++) sum[h][i] += __shfl_xor_sync(0xffffffffu, sum[h][i], step);
        }
        if (threadIdx.x % WARP < LANES) {
#pragma unroll
            for (int i = 0; i < N; i++) of_warp[warp][h][at + i] = sum[h][i];
            if (lane == 0) top_of_warp[warp][h] = highest, weights_of_warp[warp][h] = weights[h];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < present * WIDTH; i += THREADS) {
        int h = i / WIDTH, column = i % WIDTH;
        if (column >= width) continue;
        float highest = minus_infinity(), total = 0.0f, result = 0.0f;
        for (int w = 0; w < WARPS; w++) highest = fmaxf(highest, top_of_warp[w][h]);
        float shift = highest == minus_infinity() ? 0.0f : highest;
        for (int w = 0; w < WARPS; w++) {
            float shrink = exp2_fast(top_of_warp[w][h] - shift);
            total += shrink * weights_of_warp[w][h];
            result += shrink * of_warp[w][h][column];
        }
        if (gridDim.x == 1) {
            y[(head + h) * width + column] = from_float<Q>(result / total);
        } else {
            index_t part = (head + h) * gridDim.x + blockIdx.x;
            parts[part * width + column] = result;
            if (column == 0) tops[part * 2] = highest, tops[part * 2 + 1] = total;
        }
    }
}

extern "C" __global__ void attention_combine(const float* parts, const float* tops, Q* y, index_t splits,
                                             index_t width) {
    start_next_kernel();
    wait_for_previous_kernels();
    index_t head = blockIdx.x;
    parts += head * splits * width;
    tops += head * splits * 2;
    float highest = minus_infinity(), total = 0.0f;
    for (index_t s = 0; s < splits; s++) highest = fmaxf(highest, tops[s * 2]);
    float shift = highest == minus_infinity() ? 0.0f : highest;
    for (index_t s = 0; s < splits; s++) total += exp2_fast(tops[s * 2] - shift) * tops[s * 2 + 1];
    for (index_t column = threadIdx.x; column < width; column += blockDim.x) {
        float result = 0.0f;
        for (index_t s = 0; s < splits; s++) result += exp2_fast(tops[s * 2] - shift) * parts[s * width + column];
        y[head * width + column] = from_float<Q>(result / total);
    }
}
