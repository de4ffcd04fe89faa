// dv = pᵀ g,  dk = scale · dsᵀ q,  with p and ds of flash_attention_backward_q.cu: the gradients of attention's keys
// and values, summed over the query heads that share them.
//
//   arguments and defines as in that file; dk and dv with strides, G their element type
//
// A block has WARPS · TILES tiles of keys of a key/value head, and iterates over the queries of all heads that share
// it. It computes transposed products, keys in rows, so that pᵀ and dsᵀ stay in the registers that they are computed in.
// Queries beyond the last are replaced by zeros, which add nothing.

#include "tile.cuh"
#include "softmax_scores.cuh"

constexpr int THREADS = WARPS * WARP, KEYS = WARPS * TILES * 16;

struct Step {  // a block of queries of a head
    int head, query;
};

struct Stage {
    Tile<X, WIDTH, QUERIES> q, g;
    float* records;
};

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    flash_attention_backward_kv(const X* g, const X* q, const X* k, const X* v, const M* mask, const float* records,
                                G* dk, G* dv, index_t groups, index_t queries, index_t keys, index_t width,
                                index_t value_width, index_t q_by_batch, index_t q_by_head, index_t q_by_row,
                                index_t k_by_batch, index_t k_by_head, index_t k_by_row, index_t v_by_batch,
                                index_t v_by_head, index_t v_by_row, index_t dk_by_batch, index_t dk_by_head,
                                index_t dk_by_row, index_t dv_by_batch, index_t dv_by_head, index_t dv_by_row,
                                index_t mask_by_batch, index_t mask_by_head, index_t mask_by_query, index_t mask_by_key,
                                index_t causal, float scale) {
    DYNAMIC_SHARED(memory);
    Tile<X, WIDTH, KEYS> k_tile = {(X*)memory}, v_tile = {k_tile.at + KEYS * WIDTH};
    X* stages = v_tile.at + KEYS * WIDTH;
    int batch = blockIdx.z, lane = threadIdx.x % WARP, row = threadIdx.x / WARP * TILES * 16;
    int kv_head = blockIdx.x, first = blockIdx.y * KEYS, first_head = kv_head * groups;
    k += batch * k_by_batch + kv_head * k_by_head + first * k_by_row;
    v += batch * v_by_batch + kv_head * v_by_head + first * v_by_row;
    q += batch * q_by_batch;
    if (mask) mask += batch * mask_by_batch;
    index_t before = ((index_t)batch * gridDim.x * groups + first_head) * queries;

    int start = causal ? min(first, (int)queries) / QUERIES * QUERIES : 0;  // earlier queries see none of these keys
    int steps = ((int)queries - start + QUERIES - 1) / QUERIES * (int)groups;
    auto after = [&](Step step) {
        step.query += QUERIES;
        return step.query < queries ? step : Step{step.head + 1, start};
    };
    auto stage = [&](int number) {
        X* at = stages + number % 2 * (2 * QUERIES * WIDTH + QUERIES * 4 * (int)(sizeof(float) / sizeof(X)));
        return Stage{{at}, {at + QUERIES * WIDTH}, (float*)(at + 2 * QUERIES * WIDTH)};
    };
    auto copy_step = [&](Stage to, Step step) {
        int left = (int)queries - step.query;
        index_t at = before + step.head * queries + step.query;
        const X* from = q + (first_head + step.head) * q_by_head + step.query * q_by_row;
        copy_tile<THREADS>(to.q, from, q_by_row, left, width);
        copy_tile<THREADS>(to.g, g + at * value_width, value_width, left, value_width);
        for (int i = threadIdx.x; i < QUERIES; i += THREADS)
            copy_async_16(to.records + i * 4, records + (i < left ? at + i : at) * 4, i < left);
    };
    copy_tile<THREADS>(k_tile, k, k_by_row, (int)keys - first, width);
    copy_tile<THREADS>(v_tile, v, v_by_row, (int)keys - first, value_width);
    Step step = {0, start};
    if (steps > 0) copy_step(stage(0), step);
    copy_async_commit();

    float k_sum[TILES][WIDTH / 8][4], v_sum[TILES][WIDTH / 8][4];
    clear(k_sum);
    clear(v_sum);
    for (int number = 0; number < steps; number++) {
        finish_copies();
        __syncthreads();
        Step next = after(step);
        if (number + 1 < steps) copy_step(stage(number + 1), next);
        copy_async_commit();

        Stage now = stage(number);
        Scores scores = {mask ? mask + (first_head + step.head) * mask_by_head : mask,
                         (int)mask_by_query, (int)mask_by_key, (int)queries, (int)keys, causal != 0, scale};
        float p[TILES][QUERIES / 8][4], ds[TILES][QUERIES / 8][4];
        multiply_rows(p, k_tile, row, now.q);
        multiply_rows(ds, v_tile, row, now.g);
        finish_products<1>(p);
        scores.from_products<true>(p, step.query, first + row);
        auto record = [&](int n, int i) { return now.records + (n * 8 + lane % 4 * 2 + i % 2) * 4; };
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) p[m][n][i] = scores.weight(p[m][n][i], record(n, i)[0], record(n, i)[1]);
        multiply(v_sum, p, now.g);

        finish_products<1>(ds);
#pragma unroll
        for (int m = 0; m < TILES; m++)
#pragma unroll
            for (int n = 0; n < QUERIES / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) ds[m][n][i] = p[m][n][i] * (ds[m][n][i] - record(n, i)[2]);
        multiply(k_sum, ds, now.q);
        finish_products<1>(v_sum);
        finish_products<0>(k_sum);
        step = next;
    }
    copy_async_wait<0>();

    dk += batch * dk_by_batch + kv_head * dk_by_head + first * dk_by_row;
    dv += batch * dv_by_batch + kv_head * dv_by_head + first * dv_by_row;
    store(dk, dk_by_row, row, (int)keys - first, width, k_sum, scale);
    store(dv, dv_by_row, row, (int)keys - first, value_width, v_sum, 1.0f);
}
