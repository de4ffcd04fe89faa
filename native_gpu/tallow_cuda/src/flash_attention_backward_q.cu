// dq = scale · ds k,  ds = p ⊙ (g vᵀ - delta),  p = softmax(q kᵀ · scale + mask): the gradient of attention's queries.
//
//   q, k, v, mask, groups, causal, scale and the defines: as in flash_attention.cu
//   g (batch, heads, queries, value_width) contiguous and records (batch, heads, queries, 4): from flash_attention_rows.cu
//   dq: given strides, contiguous rows
//   G: element type of dq
//
// A block has WARPS · TILES tiles of queries and iterates over the keys as the forward pass does. The gradients of
// keys and values are computed by flash_attention_backward_kv.cu, whose blocks have keys and iterate over the queries.
// So two products of seven are computed twice, but there are no atomic additions: gradients have the same bits every
// time, and need no float32 copy of dq that is cleared before and converted after.
//
// Source: Dao 2023, "FlashAttention-2", arXiv:2307.08691, algorithm 2

#include "tile.cuh"
#include "softmax_scores.cuh"
#include "key_blocks.cuh"

constexpr int THREADS = WARPS * WARP, QUERIES = WARPS * TILES * 16;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    flash_attention_backward_q(const X* g, const X* q, const X* k, const X* v, const M* mask, const float* records,
                               G* dq, index_t groups, index_t queries, index_t keys, index_t width, index_t value_width,
                               index_t q_by_batch, index_t q_by_head, index_t q_by_row, index_t k_by_batch,
                               index_t k_by_head, index_t k_by_row, index_t v_by_batch, index_t v_by_head,
                               index_t v_by_row, index_t dq_by_batch, index_t dq_by_head, index_t dq_by_row,
                               index_t mask_by_batch, index_t mask_by_head, index_t mask_by_query, index_t mask_by_key,
                               index_t causal, float scale) {
    DYNAMIC_SHARED(memory);
    Tile<X, WIDTH, QUERIES> q_tile = {(X*)memory}, g_tile = {q_tile.at + QUERIES * WIDTH};
    X* stages = g_tile.at + QUERIES * WIDTH;
    int batch = blockIdx.z, head = blockIdx.x, lane = threadIdx.x % WARP, row = threadIdx.x / WARP * TILES * 16;
    int first = (gridDim.y - 1 - blockIdx.y) * QUERIES;
    index_t before = ((index_t)batch * gridDim.x + head) * queries + first;  // queries before the first of this block
    q += batch * q_by_batch + head * q_by_head + first * q_by_row;
    k += batch * k_by_batch + head / groups * k_by_head;
    v += batch * v_by_batch + head / groups * v_by_head;
    if (mask) mask += batch * mask_by_batch + head * mask_by_head;
    Scores scores = {mask, (int)mask_by_query, (int)mask_by_key, (int)queries, (int)keys, causal != 0, scale};
    int seen = causal ? min((int)keys, first + QUERIES) : (int)keys, blocks = (seen + KEYS - 1) / KEYS;

    KeyBlocks<KEYS, THREADS> there = {stages, k, v, k_by_row, v_by_row, (int)keys, (int)width, (int)value_width};
    copy_tile<THREADS>(q_tile, q, q_by_row, (int)queries - first, width);
    copy_tile<THREADS>(g_tile, g + before * value_width, value_width, (int)queries - first, value_width);
    there.copy(0);
    copy_async_commit();

    Pack<float, 4> record[TILES][2];
#pragma unroll
    for (int i = 0; i < TILES * 2; i++) {
        int r = row + i / 2 * 16 + i % 2 * 8 + lane / 4;
        record[i / 2][i % 2] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (first + r < queries) record[i / 2][i % 2] = *(const Pack<float, 4>*)(records + (before + r) * 4);
    }
    float d[TILES][WIDTH / 8][4];
    clear(d);
    for (int block = 0; block < blocks; block++) {
        finish_copies();
        __syncthreads();
        if (block + 1 < blocks) there.copy(block + 1);
        copy_async_commit();

        float p[TILES][KEYS / 8][4], ds[TILES][KEYS / 8][4];
        multiply_rows(p, q_tile, row, there.k_tile(block));
        multiply_rows(ds, g_tile, row, there.v_tile(block));
        finish_products<0>(p);
        finish_products<0>(ds);
        scores.from_products<false>(p, first + row, block * KEYS);
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const Pack<float, 4>& of = record[m][i / 2];
                    ds[m][n][i] = scores.weight(p[m][n][i], of.at[0], of.at[1]) * (ds[m][n][i] - of.at[2]);
                }
        multiply(d, ds, there.k_tile(block));
        finish_products<0>(d);
    }

    dq += batch * dq_by_batch + head * dq_by_head + first * dq_by_row;
    store(dq, dq_by_row, row, (int)queries - first, width, d, scale);
}
