// Between the projections of a decoder block and its attention: rotate the query and the key of a token by the angles
// of its position, and store the key and the value in the cache.
//
//   projected (heads + 2 · kv_heads, width) float: queries, keys and values, stacked; queries are rotated in place;
//   cos, sin (angles ≥ positions, width / 2) float;  keys, values (kv_heads, positions, width), elements C
//   position: the position in the cache, in device memory, so that a captured graph serves every token; or null, then
//             `at` is the position. If it is outside the cache, nothing is written.
//   interleaved: pairs are (2i, 2i + 1), otherwise (i, i + width / 2)
//
// One thread per pair of elements, all in one grid.

#include "element.cuh"

extern "C" __global__ void rotate_and_store(float* projected, const float* cos, const float* sin, C* keys, C* values,
                                            const index_t* position, index_t at, index_t heads, index_t kv_heads,
                                            index_t width, index_t positions, index_t interleaved) {
    index_t half = width / 2, pair = blockIdx.x * blockDim.x + threadIdx.x, head = pair / half;
    pair %= half;
    if (position) at = *position;
    if (head >= heads + 2 * kv_heads || at < 0 || at >= positions) return;
    float* row = projected + head * width;
    index_t first = interleaved ? 2 * pair : pair, second = interleaved ? first + 1 : pair + half;
    float p = row[first], q = row[second];
    if (head < heads + kv_heads) {
        float c = cos[at * half + pair], s = sin[at * half + pair], turned = p * c - q * s;
        q = p * s + q * c;
        p = turned;
    }
    if (head < heads) {
        row[first] = p;
        row[second] = q;
        return;
    }
    head -= heads;
    C* cache = head < kv_heads ? keys : values;
    cache += ((head < kv_heads ? head : head - kv_heads) * positions + at) * width;
    cache[first] = from_float<C>(p);
    cache[second] = from_float<C>(q);
}
