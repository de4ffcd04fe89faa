// The gradient of looking up rows of a table: sum the rows of g by their indices, always in the same order, so that the
// same input gives the same bits. (Atomic additions would not.)
//
//   table[v, :] = Σ g[n, :] over the n with index[n] = v, the smallest n first
//
//   index (count); indices outside of 0 .. rows - 1, and those equal to `padding`, are skipped
//   g (count, width) contiguous, float;  table (rows, width), initially zero;  keys, order: scratch for 2 · count
//   int each
//   carry (number of parts, width): scratch
//   INDEX: the element type of the index
//
//   sort_indices  a stable radix sort, four bits per pass, in one block: 8000 indices take tens of microseconds, and
//                 no more passes over memory than adding the rows
//   sum_rows      one block per 32 consecutive indices in sorted order. The part of a run that began in an earlier
//                 block is stored as a carry; all other sums go to the table.
//   add_carries   adds the carries, in the block in which such a run begins

#include "element.cuh"

constexpr int THREADS = 512, DIGITS = 16, BITS = 4, PART = 32, WARP = 32, AT_ONCE = 8, COLUMNS = 4;

__device__ int exclusive_sum(int x) {
    __shared__ int partial[THREADS / WARP];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, running = x;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
        int other = __shfl_up_sync(0xffffffffu, running, step);
        if (lane >= step) running += other;
    }
    if (lane == WARP - 1) partial[warp] = running;
    __syncthreads();
    int before = running - x;
    for (int i = 0; i < warp; i++) before += partial[i];
    __syncthreads();
    return before;
}

// The sorted keys, and their original positions, are in the second halves of their buffers if `passes` is odd.
extern "C" __global__ void __launch_bounds__(THREADS) sort_indices(
    const INDEX* index, int* keys, int* order, index_t count, index_t rows, index_t padding, index_t passes) {
    __shared__ int counts[DIGITS * THREADS];  // counts by digit, and within it by thread; then their offsets
    int tid = threadIdx.x;
    index_t strip = (count + THREADS - 1) / THREADS, start = min(tid * strip, count), end = min(start + strip, count);
    for (index_t i = tid; i < count; i += THREADS) {
        index_t v = index[i];
        keys[i] = v < 0 || v >= rows || v == padding ? (int)rows : (int)v;  // the largest key: skipped
        order[i] = (int)i;
    }
    for (int pass = 0; pass < passes; pass++) {
        const int *from = keys + (pass % 2) * count, *places = order + (pass % 2) * count;
        int *to = keys + ((pass + 1) % 2) * count, *new_places = order + ((pass + 1) % 2) * count;
        for (int d = 0; d < DIGITS; d++) counts[d * THREADS + tid] = 0;
        __syncthreads();  // all keys are written too
        for (index_t i = start; i < end; i++) counts[(from[i] >> pass * BITS & DIGITS - 1) * THREADS + tid]++;
        __syncthreads();
        int sum = 0;
        for (int j = 0; j < DIGITS; j++) sum += counts[tid * DIGITS + j];
        int before = exclusive_sum(sum);
        for (int j = 0; j < DIGITS; j++) {
            int here = counts[tid * DIGITS + j];
            counts[tid * DIGITS + j] = before;
            before += here;
        }
        __syncthreads();
        for (index_t i = start; i < end; i++) {
            int at = counts[(from[i] >> pass * BITS & DIGITS - 1) * THREADS + tid]++;
            to[at] = from[i];
            new_places[at] = places[i];
        }
        __syncthreads();
    }
}

template <int M>
__device__ void sum_columns(
    const float* __restrict__ g, const int* keys, const int* order, bool goes_on, int length, index_t rows,
    float* __restrict__ table, float* __restrict__ carry, index_t width) {
    Pack<float, M> sum = {};
    bool is_carry = goes_on;
    for (int p = 0; p < length; p += AT_ONCE) {
        Pack<float, M> values[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (p + j < length) values[j] = *(const Pack<float, M>*)(g + order[p + j] * width);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (p + j >= length) break;
            int key = keys[p + j];
#pragma unroll
            for (int m = 0; m < M; m++) sum.at[m] += values[j].at[m];
            if (p + j + 1 < length && keys[p + j + 1] == key) continue;
            if (is_carry)
                *(Pack<float, M>*)carry = sum;
            else if (key < rows)
                *(Pack<float, M>*)(table + key * width) = sum;
            sum = {};
            is_carry = false;
        }
    }
}

// blockIdx: the part, the columns
extern "C" __global__ void sum_rows(
    const float* g, const int* keys, const int* order, float* table, float* carry, index_t count, index_t width,
    index_t rows) {
    __shared__ int part_keys[PART], part_order[PART];
    index_t first = (index_t)blockIdx.x * PART;
    int length = (int)min((index_t)PART, count - first);
    if (threadIdx.x < length) {
        part_keys[threadIdx.x] = keys[first + threadIdx.x];
        part_order[threadIdx.x] = order[first + threadIdx.x];
    }
    __syncthreads();
    bool goes_on = first > 0 && keys[first - 1] == part_keys[0];
    carry += blockIdx.x * width;
    bool packed = width % COLUMNS == 0 && aligned<COLUMNS>(g) && aligned<COLUMNS>(table);
    index_t begin = (index_t)blockIdx.y * blockDim.x * COLUMNS;
    if (packed) {
        index_t c = begin + threadIdx.x * COLUMNS;
        if (c < width)
            sum_columns<COLUMNS>(
                g + c, part_keys, part_order, goes_on, length, rows, table + c, carry + c, width);
    } else {
        for (index_t c = begin + threadIdx.x; c < min(begin + blockDim.x * COLUMNS, width); c += blockDim.x)
            sum_columns<1>(g + c, part_keys, part_order, goes_on, length, rows, table + c, carry + c, width);
    }
}

extern "C" __global__ void add_carries(
    const int* keys, const float* carry, float* table, index_t count, index_t width, index_t rows) {
    index_t part = blockIdx.x, parts = gridDim.x, first = part * PART, next = first + PART;
    if (next >= count) return;
    int key = keys[next - 1];
    bool began_before = first > 0 && keys[first - 1] == key;  // keys are sorted, so this whole part has that key
    if (key >= rows || keys[next] != key || began_before) return;
    index_t last = part + 1;  // the last part with a carry for the key
    while (last + 1 < parts && keys[(last + 1) * PART] == key) last++;
    for (index_t c = (index_t)blockIdx.y * blockDim.x * COLUMNS + threadIdx.x, i = 0; i < COLUMNS && c < width;
         i++, c += blockDim.x) {
        float sum = table[key * width + c];
#pragma unroll 8
        for (index_t p = part + 1; p <= last; p++) sum += carry[p * width + c];
        table[key * width + c] = sum;
    }
}
