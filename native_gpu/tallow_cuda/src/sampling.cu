// Sample the next tokens from rows of logits, without copying the logits: tallow.generation.Sampler on the GPU.
//
//   weight_i = exp((x_i - max x) / temperature), in double as on the host;  tokens drawn in proportion to it, among
//     top_k   tokens at least as likely as the k-th
//     top_p   the likeliest, the first of equals, up to the first whose running sum exceeds p of the total
//     min_p   tokens of at least that weight
//   uniform: a number in [0, 1) for each row. The drawn token is the first whose running sum, in the order of tokens or
//   with top_p from the likeliest, exceeds uniform · total.  -1 if x has NaN or +infinity, or only -infinity.
//
// Tokens are ordered by 64-bit keys, the largest first: 32 bits ordered as the logits, and below them the complement of
// the index. So no two keys are equal, and each of the limits above is the last key that is kept.
//
//   group_keys  one warp per 256 tokens: the largest key of each such group. Many blocks.
//   find_bound  the largest key, and the k-th of the groups' keys: no token below it is among the top_k. One block.
//   collect     the weights of a chunk of 2048 tokens, and the candidates that the bounds do not rule out. Many blocks.
//   choose      the limits, by bisection of the keys of the candidates; and the draw. One block.
//
//   x (rows, width) contiguous;  X: its element type

#include "element.cuh"

typedef unsigned long long order_t;

constexpr int GROUP = 256, CHUNK = 2048, PER_THREAD = 8, WARP = 32, ROWS = 64;
constexpr int COLLECT_THREADS = CHUNK / PER_THREAD, CHOOSE_THREADS = 256, FEW = 2048;
constexpr unsigned ALL = 0xffffffffu, NAN_KEY = 0xffffffffu, INFINITY_KEY = 0xff800000u, MINUS_INFINITY_KEY = 0x007fffffu;

struct Uniforms {
    double of_row[ROWS];
};

// The bounds of a row, computed before `collect`.
struct Bounds {
    unsigned highest, lowest;
};

struct Candidate {
    order_t key;
    double weight;
};

// Of a chunk: the sum of all weights, that of the candidates, and the number of candidates.
struct Sums {
    double all, kept;
    index_t candidates;
};

__device__ __forceinline__ unsigned ordered(float x) {
    if (x != x) return NAN_KEY;
    unsigned bits = __float_as_uint(x + 0.0f);  // -0 is 0
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float value_of(unsigned key) {
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ __forceinline__ order_t key_of(unsigned high, unsigned index) { return (order_t)high << 32 | (unsigned)~index; }
__device__ __forceinline__ index_t index_of(order_t key) { return (unsigned)~(unsigned)key; }

// A sum, and the smallest and largest key, over threads.
struct Total {
    double sum;
    order_t least, most;

    __device__ __forceinline__ void add(Total other) {
        sum += other.sum;
        least = min(least, other.least);
        most = max(most, other.most);
    }
};

__device__ __forceinline__ Total nothing() { return {0.0, ~(order_t)0, 0}; }

__device__ __forceinline__ Total warp_total(Total t) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        t.add({__shfl_xor_sync(ALL, t.sum, step), __shfl_xor_sync(ALL, t.least, step), __shfl_xor_sync(ALL, t.most, step)});
    return t;
}

// Return the total to every thread, the same to the last bit.
__device__ Total block_total(Total t) {
    __shared__ Total partial[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    t = warp_total(t);
    if (lane == 0) partial[warp] = t;
    __syncthreads();
    t = warp_total(lane < warps ? partial[lane] : nothing());
    __syncthreads();
    return t;
}

__device__ __forceinline__ double block_sum(double x) { return block_total({x, ~(order_t)0, 0}).sum; }

// Return the sum of x over the threads before this one.
template <class T> __device__ T block_sum_before(T x) {
    __shared__ T partial[WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    T running = x;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        T other = __shfl_up_sync(ALL, running, step);
        if (lane >= step) running += other;
    }
    if (lane == WARP - 1) partial[warp] = running;
    __syncthreads();
    T before = running - x;
    for (int i = 0; i < warp; i++) before += partial[i];
    __syncthreads();
    return before;
}

// Return the candidate, among those with keys of at least `low`, at which the running sum of weights, or of ones,
// exceeds `target`, the largest key first; the last if none does. Each pass halves the remaining range of keys, at the
// highest bit in which its ends differ.
__device__ order_t select(const Candidate* list, index_t count, order_t low, bool by_weight, double target) {
    Total range = nothing();
    for (index_t i = threadIdx.x; i < count; i += blockDim.x)
        if (list[i].key >= low) range.add({0.0, list[i].key, list[i].key});
    range = block_total(range);
    low = range.least;
    order_t high = range.most;
    double above = 0.0;
    while (low < high) {
        order_t middle = high & ~(order_t)0 << (63 - __clzll((long long)(low ^ high)));
        Total upper = nothing();  // of keys ≥ `middle`; and the maximum of those below
        for (index_t i = threadIdx.x; i < count; i += blockDim.x) {
            order_t key = list[i].key;
            if (key < low || key > high) continue;
            if (key >= middle)
                upper.add({by_weight ? list[i].weight : 1.0, key, 0});
            else
                upper.most = max(upper.most, key);
        }
        upper = block_total(upper);
        if (target < above + upper.sum) {
            low = upper.least;
        } else {
            above += upper.sum;
            high = upper.most;
        }
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(COLLECT_THREADS) group_keys(const X* x, unsigned* groups, index_t width) {
    int lane = threadIdx.x % WARP;
    index_t per_row = (width + GROUP - 1) / GROUP, group = (index_t)blockIdx.x * (COLLECT_THREADS / WARP) + threadIdx.x / WARP;
    if (group >= per_row) return;
    x += blockIdx.y * width;
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < GROUP / WARP; i++) {
        index_t at = group * GROUP + i * WARP + lane;
        if (at < width) most = max(most, ordered(to_float(x[at])));
    }
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) most = max(most, __shfl_xor_sync(ALL, most, step));
    if (lane == 0) groups[blockIdx.y * per_row + group] = most;
}

// `list` has the capacity for the groups of all rows.
extern "C" __global__ void find_bound(
    const unsigned* groups, Candidate* list, Bounds* bounds, index_t count, index_t top_k) {
    index_t row = blockIdx.x;
    groups += row * count;
    list += row * count;
    Total all = nothing();
    for (index_t i = threadIdx.x; i < count; i += blockDim.x) {
        list[i].key = key_of(groups[i], (unsigned)i);
        all.add({0.0, list[i].key, list[i].key});
    }
    all = block_total(all);  // after it all threads can read the list
    order_t kth = top_k && top_k <= count ? select(list, count, 0, false, top_k - 1) : 0;
    if (threadIdx.x == 0) bounds[row] = {(unsigned)(all.most >> 32), (unsigned)(kth >> 32)};
}

// Candidates of a chunk are in the order of their indices, in the chunk's own slots.
extern "C" __global__ void __launch_bounds__(COLLECT_THREADS) collect(
    const X* x, const Bounds* bounds, Candidate* slots, Sums* sums, index_t width, double temperature, double floor) {
    index_t row = blockIdx.y, chunk = blockIdx.x, chunks = gridDim.x, first = chunk * CHUNK + threadIdx.x * PER_THREAD;
    x += row * width;
    slots += (row * chunks + chunk) * CHUNK;
    Bounds bound = bounds[row];
    double highest = value_of(bound.highest), weights[PER_THREAD], all = 0.0, sum = 0.0;
    unsigned keys[PER_THREAD], kept = 0;
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++) {
        float value = first + j < width ? to_float(x[first + j]) : 0.0f;
        keys[j] = ordered(value);
        weights[j] = first + j < width ? exp(((double)value - highest) / temperature) : 0.0;
        all += weights[j];
        if (first + j < width && keys[j] >= bound.lowest && weights[j] >= floor && weights[j] > 0.0) {
            kept |= 1u << j;
            sum += weights[j];
        }
    }
    int at = block_sum_before(__popc(kept));
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++)
        if (kept >> j & 1) slots[at++] = {key_of(keys[j], (unsigned)(first + j)), weights[j]};
    all = block_sum(all);
    sum = block_sum(sum);
    if (threadIdx.x == COLLECT_THREADS - 1) sums[row * chunks + chunk] = {all, sum, at};
}

// Return the weight of the candidates of a chunk with keys ≥ `low`, to all lanes of a warp.
__device__ double chunk_weight(const Candidate* slots, index_t count, order_t low) {
    double sum = 0.0;
    for (index_t i = threadIdx.x % WARP; i < count; i += WARP)
        if (slots[i].key >= low) sum += slots[i].weight;
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    return sum;
}

// `list` has the capacity for all slots, and `of_chunk` for one number per chunk, if they are needed.
extern "C" __global__ void __launch_bounds__(CHOOSE_THREADS) choose(
    const Bounds* bounds, const Candidate* slots, const Sums* sums, Candidate* list, double* of_chunk, index_t* tokens,
    index_t chunks, index_t top_k, double top_p, double min_p, const __grid_constant__ Uniforms uniforms) {
    __shared__ Candidate few[FEW];
    __shared__ index_t found_chunk;
    __shared__ double found_before;
    index_t row = blockIdx.x;
    int tid = threadIdx.x, lane = tid % WARP, warp = tid / WARP, warps = CHOOSE_THREADS / WARP;
    unsigned highest = bounds[row].highest;
    if (highest >= INFINITY_KEY || highest <= MINUS_INFINITY_KEY) {
        if (tid == 0) tokens[row] = -1;
        return;
    }
    slots += row * chunks * CHUNK;
    list += row * chunks * CHUNK;
    sums += row * chunks;
    of_chunk += row * chunks;
    double uniform = uniforms.of_row[row];
    order_t low = 0;
    index_t count = 0;
    if (top_k || top_p < 1.0) {  // all candidates contiguous, in shared memory if there are few
        double total = 0.0;
        for (index_t c = 0; c < chunks; c++) {
            total += sums[c].all;
            count += sums[c].candidates;
        }
        if (count <= FEW) list = few;
        index_t start = 0;
        for (index_t c = 0; c < chunks; c++) {
            index_t n = sums[c].candidates;
            if (c % warps == warp)
                for (index_t i = lane; i < n; i += WARP) list[start + i] = slots[c * CHUNK + i];
            start += n;
        }
        __syncthreads();
        if (top_k) {
            low = top_k < count ? select(list, count, 0, false, top_k - 1) >> 32 << 32 : 0;  // and keys equal to it
            double sum = 0.0;
            for (index_t i = tid; i < count; i += blockDim.x)
                if (list[i].key >= low) sum += list[i].weight;
            total = block_sum(sum);
        }
        if (top_p < 1.0) low = select(list, count, low, true, top_p * total);
    }
    if (top_p < 1.0) {
        Total kept = nothing();
        for (index_t i = tid; i < count; i += blockDim.x)
            if (list[i].key >= low && list[i].weight >= min_p) kept.add({list[i].weight, list[i].key, list[i].key});
        kept = block_total(kept);
        order_t drawn = select(list, count, kept.least, true, uniform * kept.sum);
        if (tid == 0) tokens[row] = index_of(drawn);
        return;
    }
    // In the order of tokens: first find the chunk, then the token in it.
    for (index_t c = warp; c < chunks; c += warps) {
        double sum = low ? chunk_weight(slots + c * CHUNK, sums[c].candidates, low) : sums[c].kept;
        if (lane == 0) of_chunk[c] = sum;
    }
    __syncthreads();
    if (tid == 0) {
        double total = 0.0, before = 0.0;
        for (index_t c = 0; c < chunks; c++) total += of_chunk[c];
        index_t at = 0, last = 0;
        for (index_t c = 0; c < chunks; c++)
            if (of_chunk[c] > 0.0) last = c;
        while (at < last && before + of_chunk[at] <= uniform * total) before += of_chunk[at++];
        found_chunk = at;
        found_before = uniform * total - before;  // the remainder to exceed within the chunk
    }
    __syncthreads();
    slots += found_chunk * CHUNK;
    count = sums[found_chunk].candidates;
    double sum = 0.0, weights[CHUNK / CHOOSE_THREADS];
    index_t first = tid * (CHUNK / CHOOSE_THREADS);
#pragma unroll
    for (int j = 0; j < CHUNK / CHOOSE_THREADS; j++) {
        weights[j] = first + j < count && slots[first + j].key >= low ? slots[first + j].weight : 0.0;
        sum += weights[j];
    }
    double running = block_sum_before(sum);
    // The first that exceeds it has the smallest position; if none does because of rounding, take the last with a
    // weight.
    Total place = nothing();
#pragma unroll
    for (int j = 0; j < CHUNK / CHOOSE_THREADS; j++) {
        running += weights[j];
        if (weights[j] > 0.0) place.add({0.0, running > found_before ? (order_t)(first + j) : ~(order_t)0, (order_t)(first + j)});
    }
    place = block_total(place);
    if (tid == 0) tokens[row] = index_of(slots[min(place.least, place.most)].key);
}

// Return the likeliest token, the first of equals; -1 if there is a NaN. One block per row.
extern "C" __global__ void greedy(const X* x, index_t* tokens, index_t width) {
    x += blockIdx.x * width;
    order_t most = 0;
#pragma unroll 8
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) most = max(most, key_of(ordered(to_float(x[i])), (unsigned)i));
    most = block_total({0.0, ~(order_t)0, most}).most;
    unsigned highest = (unsigned)(most >> 32);
    if (threadIdx.x == 0)
        tokens[blockIdx.x] = highest >= INFINITY_KEY || highest <= MINUS_INFINITY_KEY ? -1 : index_of(most);
}
