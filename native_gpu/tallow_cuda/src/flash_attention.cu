// y = softmax(q kᵀ · scale + mask) v, without ever storing the scores of all queries and keys.
//
//   q (batch, heads, queries, width), k (batch, heads / groups, keys, width), v (batch, heads / groups, keys, value_width)
//   and y (batch, heads, queries, value_width): with given strides in elements, contiguous rows at multiples of 16
//   bytes, widths multiples of 8 and at most WIDTH
//   mask: null, or with strides for the four axes of the scores, 0 where it is broadcast; a head spans fewer than 2³¹
//         elements
//   stats (batch, heads, queries, 2) contiguous: shift and log_sum of each row, see Scores::weight
//   causal: query i sees keys 0 to i, counted from the first key
//   special: a query that sees no key gets zeros; NaN propagates
//   X: element type of q, k, v and y, f16 or bf16;  M: of the mask;  WIDTH: 64 or 128;  ADDED: see softmax_scores.cuh
//   WARPS: per block;  TILES: tiles of 16 rows per warp;  KEYS: keys processed at once, a multiple of 16
//   RESIDENT: minimum number of blocks per multiprocessor, which limits the registers
//   WGMMA: see tile.cuh; it requires TILES = 1, and multiples of four WARPS and of 64 KEYS
//
// A block has the queries of WARPS · TILES tiles, and iterates over the keys in blocks of KEYS. A warp has TILES of
// these tiles, whose scores, weights and results stay in its registers; the next keys and values are copied during the
// products. The maxima and sums of rows cover the keys so far; results are rescaled when a maximum grows.
//
// Source: Dao 2023, "FlashAttention-2", arXiv:2307.08691, algorithm 1

#include "tile.cuh"
#include "softmax_scores.cuh"
#include "key_blocks.cuh"

constexpr int THREADS = WARPS * WARP, QUERIES = WARPS * TILES * 16;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    flash_attention(const X* q, const X* k, const X* v, const M* mask, X* y, float* stats, index_t groups,
                    index_t queries, index_t keys, index_t width, index_t value_width, index_t q_by_batch,
                    index_t q_by_head, index_t q_by_row, index_t k_by_batch, index_t k_by_head, index_t k_by_row,
                    index_t v_by_batch, index_t v_by_head, index_t v_by_row, index_t y_by_batch, index_t y_by_head,
                    index_t y_by_row, index_t mask_by_batch, index_t mask_by_head, index_t mask_by_query,
                    index_t mask_by_key, index_t causal, float scale) {
    DYNAMIC_SHARED(memory);
    Tile<X, WIDTH, QUERIES> q_tile = {(X*)memory};
    X* stages = q_tile.at + QUERIES * WIDTH;
    int batch = blockIdx.z, head = blockIdx.x, lane = threadIdx.x % WARP, row = threadIdx.x / WARP * TILES * 16;
    int first = (gridDim.y - 1 - blockIdx.y) * QUERIES;  // in all heads, causal rows that see the most keys start first
    q += batch * q_by_batch + head * q_by_head + first * q_by_row;
    k += batch * k_by_batch + head / groups * k_by_head;
    v += batch * v_by_batch + head / groups * v_by_head;
    if (mask) mask += batch * mask_by_batch + head * mask_by_head;
    Scores scores = {mask, (int)mask_by_query, (int)mask_by_key, (int)queries, (int)keys, causal != 0, scale};
    int seen = causal ? min((int)keys, first + QUERIES) : (int)keys, blocks = (seen + KEYS - 1) / KEYS;

    KeyBlocks<KEYS, THREADS> there = {stages, k, v, k_by_row, v_by_row, (int)keys, (int)width, (int)value_width};
    copy_tile<THREADS>(q_tile, q, q_by_row, (int)queries - first, width);
    there.copy(0);
    copy_async_commit();

    float o[TILES][WIDTH / 8][4], top[TILES][2], sum[TILES][2];  // a lane has two rows of a tile: g and g + 8
    clear(o);
#pragma unroll
    for (int i = 0; i < TILES * 2; i++) top[i / 2][i % 2] = minus_infinity(), sum[i / 2][i % 2] = 0.0f;

    for (int block = 0; block < blocks; block++) {
        finish_copies();
        __syncthreads();  // this block has arrived; the next one overwrites the previous
        if (block + 1 < blocks) there.copy(block + 1);
        copy_async_commit();

        float s[TILES][KEYS / 8][4];
        multiply_rows(s, q_tile, row, there.k_tile(block));
        finish_products<0>(s);
        scores.from_products<false>(s, first + row, block * KEYS);
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float highest = top[m][half];
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++)
                    highest = fmaxf(highest, fmaxf(s[m][n][half * 2], s[m][n][half * 2 + 1]));
                highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
                highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
                float shift = highest == minus_infinity() ? 0.0f : highest;  // no key seen yet: -inf - -inf is NaN
                // Most blocks have no new maximum for any row of the warp.
                if (__any_sync(0xffffffffu, highest > top[m][half])) {
                    float shrink = scores.weight(top[m][half], shift, 0.0f);
                    top[m][half] = highest;
                    sum[m][half] *= shrink;
#pragma unroll
                    for (int n = 0; n < WIDTH / 8; n++) o[m][n][half * 2] *= shrink, o[m][n][half * 2 + 1] *= shrink;
                }
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                    for (int i = half * 2; i < half * 2 + 2; i++)
                        sum[m][half] += s[m][n][i] = scores.weight(s[m][n][i], shift, 0.0f);
            }
        multiply(o, s, there.v_tile(block));
        finish_products<0>(o);
    }

    // The results overwrite the queries in shared memory, and are stored from there 16 bytes at a time.
    __syncthreads();
#pragma unroll
    for (int m = 0; m < TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float total = sum[m][half];
            total += __shfl_xor_sync(0xffffffffu, total, 1);
            total += __shfl_xor_sync(0xffffffffu, total, 2);
            bool blind = total == 0.0f;
            float share = blind ? 0.0f : 1.0f / total;
            int r = row + m * 16 + half * 8 + lane / 4;
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++)
                ((unsigned*)q_tile.chunk(r, n))[lane % 4] =
                    pack<X>(o[m][n][half * 2] * share, o[m][n][half * 2 + 1] * share);
            if (lane % 4 == 0 && first + r < queries) {
                float* of_row = stats + (((index_t)batch * gridDim.x + head) * queries + first + r) * 2;
                of_row[0] = blind ? 0.0f : top[m][half];
                of_row[1] = blind ? -minus_infinity() : log2f(total);
            }
        }
    __syncwarp();
    y += batch * y_by_batch + head * y_by_head + first * y_by_row;
    for (int i = lane; i < TILES * 16 * (WIDTH / 8); i += WARP) {
        int r = row + i / (WIDTH / 8), number = i % (WIDTH / 8);
        if (first + r < queries && number * 8 < value_width)
            *(Pack<X, 8>*)(y + r * y_by_row + number * 8) = *(const Pack<X, 8>*)q_tile.chunk(r, number);
    }
}
