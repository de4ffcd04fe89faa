// Between the projections of a decoder block and its attention: add the biases to the query, key and value of each
// token, normalize the heads of query and key, rotate them by the angles of the position, and store key and value in
// the cache.
//
//   projected (tokens, heads + 2 · kv_heads, width) float: queries, keys and values; queries are written in place;
//   query_bias (heads, width), key_bias, value_bias (kv_heads, width), query_norm, key_norm (width) float, or null
//   cos, sin (angles ≥ positions, width / 2) float;  keys, values (texts, kv_heads, positions, width), elements C
//   places: for each token its text, its position and the first position that it sees, in device memory, so that a
//           captured graph serves all tokens; or null, then the position of the one token is `at`, in the first text.
//           If a position is outside the cache, nothing is written.
//   interleaved: pairs are (2i, 2i + 1), otherwise (i, i + width / 2)
//
// One block per head and token, of whole warps, with a thread per pair of elements.

#include "element.cuh"
#include "memory.cuh"
#include "reduce.cuh"

extern "C" __global__ void rotate_and_store(float* projected, const float* query_bias, const float* key_bias,
                                            const float* value_bias, const float* query_norm, const float* key_norm,
                                            const float* cos, const float* sin, C* keys, C* values,
                                            const index_t* places, index_t at, index_t heads, index_t kv_heads,
                                            index_t width, index_t positions, index_t interleaved, float eps) {
    index_t half = width / 2, pair = threadIdx.x, head = blockIdx.x, text = 0;
    start_next_kernel();
    wait_for_previous_kernels();
    if (places) text = places[3 * blockIdx.y], at = places[3 * blockIdx.y + 1];
    if (at < 0 || at >= positions) return;
    float* row = projected + (blockIdx.y * (index_t)gridDim.x + head) * width;
    bool is_query = head < heads, is_key = !is_query && head < heads + kv_heads, there = pair < half;
    head -= is_query ? 0 : is_key ? heads : heads + kv_heads;
    const float* bias = is_query ? query_bias : is_key ? key_bias : value_bias;
    const float* norm = is_query ? query_norm : is_key ? key_norm : nullptr;

    index_t first = interleaved ? 2 * pair : pair, second = interleaved ? first + 1 : pair + half;
    float p = there ? row[first] : 0.0f, q = there ? row[second] : 0.0f;
    if (bias && there) {
        p += bias[head * width + first];
        q += bias[head * width + second];
    }
    if (norm) {
        float scale = rsqrtf(block_reduce<Add>(p * p + q * q) / width + eps);
        if (there) {
            p *= scale * norm[first];
            q *= scale * norm[second];
        }
    }
    if (!there) return;
    if (is_query || is_key) {
        float c = cos[at * half + pair], s = sin[at * half + pair], turned = p * c - q * s;
        q = p * s + q * c;
        p = turned;
    }
    if (is_query) {
        row[first] = p;
        row[second] = q;
        return;
    }
    C* cache = (is_key ? keys : values) + ((text * kv_heads + head) * positions + at) * width;
    cache[first] = from_float<C>(p);
    cache[second] = from_float<C>(q);
}
