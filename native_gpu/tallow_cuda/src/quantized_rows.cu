// y = x · Wᵀ for a few rows of x and quantized W, where reading W should be all the work; see linear_rows.cu, whose
// arguments these are.
//
// Tensor cores compute the products, about as exactly as float arithmetic: f16 holds the weights, which are small
// integers, and x is the sum of PARTS numbers in f16, scaled by a power of 2 for each step below. They are columns of
// one product, of which it has 8 in any case. The weights have an offset, whose products are subtracted.
//
// With shifts, each group adds its own times the sum of its x, which is what the offset is multiplied by, too.
//
// The warps of a block share a tile of 16 rows of W, and each has every WARPS-th step of 64 bytes of them: four lanes
// have 16 bytes each. If groups are smaller than a step, SPREAD lets the four share each 16 bytes, so that a product is
// of one group. A warp has AHEAD steps in flight, also from one tile to the next. Blocks first store x, times the norm,
// in shared memory, in the order in which lanes read it.

#include "memory.cuh"
#include "mma.cuh"
#include "product_end.cuh"
#include "reduce.cuh"
#include "weights.cuh"

constexpr int WARPS = 8, AHEAD = SHIFTED ? 2 : 4;  // shifts take registers
constexpr int RESIDENT = 2;  // blocks of a multiprocessor, by their registers

template <class T> constexpr int parts_of = 1;  // of f16 and bf16
template <> constexpr int parts_of<float> = 2;

typedef Codes<W> Format;
constexpr int PAIRS = Format::PAIRS, PER_WORD = 2 * PAIRS, PER_LOAD = 4 * PER_WORD, STEP = 4 * PER_LOAD;
constexpr int PARTS = NORM ? 2 : parts_of<X>, COLUMNS = ROWS * PARTS, TILES = (COLUMNS + 7) / 8;
constexpr int OUTPUTS = GATED ? 8 : 16;  // of a tile
constexpr int SCALES = SPREAD ? 4 : 1;   // of a row in a step

// The order of the words of a step: word w of lane t of four.
__device__ __forceinline__ int word_at(int w, int t) { return SPREAD ? 4 * w + t : 4 * t + w; }

// The rows of x in shared memory.
struct Staged {
    unsigned* pairs;  // f16, by step, word, column and lane
    float* back;      // what the products of a step are multiplied by, (steps, ROWS)
    float* offset;    // the products of the offset with each part of a step that has a scale, (steps · SCALES, ROWS)

    __device__ __forceinline__ Pack<unsigned, PAIRS>& at(int step, int w, int column, int t) const {
        return *(Pack<unsigned, PAIRS>*)(pairs + (((step * 4 + w) * COLUMNS + column) * 4 + t) * PAIRS);
    }
};

// The elements of a row of x and of the norm for one word of codes, zeros after the end.
struct Loaded {
    Pack<X, PER_WORD> x;
    Pack<float, PER_WORD> norm;
};

// Store what lane i % 16 has loaded of step i / 16, for row r; returns its sum of x².
__device__ __forceinline__ float store(const Loaded& loaded, int i, int r, const Staged& staged) {
    float value[PER_WORD], most = 0.0f, sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int j = 0; j < PER_WORD; j++) {
        value[j] = to_float(loaded.x.at[j]);
        square += value[j] * value[j];
        if (NORM) value[j] *= loaded.norm.at[j];
        most = fmaxf(most, fabsf(value[j]));
        sum += value[j];
    }
#pragma unroll
    for (int lanes = 1; lanes < 16; lanes *= 2) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lanes));
        if (lanes < 16 / SCALES) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    }
    unsigned up = 268 - (__float_as_uint(most) >> 23);  // the exponent of what makes `most` 2^14 to 2^15
    up = min(max(up, 24u), 253u);
    if (i % 16 == 0) staged.back[i / 16 * ROWS + r] = __uint_as_float((254 + 24 - up) << 23);
    if (i % (16 / SCALES) == 0) staged.offset[i / (16 / SCALES) * ROWS + r] = sum * Format::OFFSET;
#pragma unroll
    for (int j = 0; j < PER_WORD; j++) value[j] *= __uint_as_float(up << 23) / (j % 2 ? Format::ODD : 1.0f);
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        Pack<unsigned, PAIRS> pairs;
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            f16 first = from_float<f16>(value[j]), second = from_float<f16>(value[j + PAIRS]);
            pairs.at[j] = first.bits | (unsigned)second.bits << 16;
            value[j] -= to_float(first);
            value[j + PAIRS] -= to_float(second);
        }
        staged.at(i / 16, i / 4 % 4, r * PARTS + p, i % 4) = pairs;
    }
    return square;
}

// Store x, times the norm, by all threads of the block; and the sum of x² of each row.
__device__ __forceinline__ void stage(
    const X* x, const float* norm, index_t rows, int width, int steps, const Staged& staged, float* squares) {
    constexpr int AT_ONCE = 3;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const X* row = x + min((index_t)r, rows - 1) * width;
        float square = 0.0f;
        for (int base = threadIdx.x; base < steps * 16; base += AT_ONCE * blockDim.x) {
            Loaded loaded[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                int i = base + u * blockDim.x, k = i / 16 * STEP + word_at(i / 4 % 4, i % 4) * PER_WORD;
                loaded[u] = {};
                if (k < width) {
                    loaded[u].x = *(const Pack<X, PER_WORD>*)(row + k);
                    if (NORM) loaded[u].norm = *(const Pack<float, PER_WORD>*)(norm + k);
                }
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                int i = base + u * blockDim.x;  // 16 adjacent lanes have a step
                if (i < steps * 16) square += store(loaded[u], i, r, staged);
            }
        }
        if (NORM) {
            square = block_reduce<Add>(square);
            if (threadIdx.x == 0) squares[r] = square;
        }
    }
    __syncthreads();
}

struct Row {
    const char* codes;
    const S *scales, *shifts;
};

// What a lane reads in a step: 16 bytes of each of two rows.
struct Fetched {
    Words words[2];
    S scale[2][SCALES], shift[2][SHIFTED ? SCALES : 1];
};

// Beyond the end of the row, where x is 0 or the step is not used, its last bytes are read again.
__device__ __forceinline__ Fetched fetch(const Row* row, int step, int t, int bytes, int group_log2) {
    Fetched fetched;
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int w = 0; w < SCALES; w++) {
            int at = min(step * 64 + (SPREAD ? 16 * w : 16 * t), bytes - 16);
            if (SPREAD)
                fetched.words[h].at[w] = *(const unsigned*)(row[h].codes + at + 4 * t);
            else
                fetched.words[h] = load_once(row[h].codes + at);
            int group = at / 16 * PER_LOAD >> group_log2;
            fetched.scale[h][w] = row[h].scales[group];
            if (SHIFTED) fetched.shift[h][w] = row[h].shifts[group];
        }
    }
    return fetched;
}

// Add the products of a step to the sums.
__device__ __forceinline__ void multiply(const Fetched& fetched, const Staged& staged, int step,
                                         float (&sum)[TILES][4]) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    float product[2][TILES][4] = {};
#pragma unroll
    for (int w = 0; w < 4; w++) {
        unsigned low = fetched.words[0].at[w], high = fetched.words[1].at[w];
#pragma unroll
        for (int n = 0; n < TILES; n++) {  // columns beyond the last, which are not used, repeat it
            Pack<unsigned, PAIRS> b = staged.at(step, w, min(n * 8 + g, COLUMNS - 1), t);
#pragma unroll
            for (int i = 0; i < PAIRS; i += 2) {
                unsigned a[4] = {Format::pair(low, i), Format::pair(high, i), Format::pair(low, i + 1),
                                 Format::pair(high, i + 1)};
                multiply_add<f16>(product[i / 2][n], a, b.at[i], b.at[i + 1]);
            }
        }
        if (SPREAD || w == 3) {
#pragma unroll
            for (int n = 0; n < TILES; n++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int column = n * 8 + 2 * t + i % 2, r = min(column / PARTS, ROWS - 1);
                    float of_step = (product[0][n][i] + product[1][n][i]) * staged.back[step * ROWS + r];
                    if (column % PARTS == 0) {
                        float offset = staged.offset[(step * SCALES + w % SCALES) * ROWS + r];
                        of_step -= offset;
                        if (SHIFTED) sum[n][i] += to_float(fetched.shift[i / 2][w % SCALES]) * (offset / Format::OFFSET);
                    }
                    sum[n][i] += to_float(fetched.scale[i / 2][w % SCALES]) * of_step;
                    product[0][n][i] = product[1][n][i] = 0.0f;
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(WARP * WARPS, RESIDENT) quantized_rows(
    const X* x, const W* weights_0, const W* weights_1, const W* weights_2, const S* scales_0, const S* scales_1,
    const S* scales_2, const S* shifts_0, const S* shifts_1, const S* shifts_2, index_t count_0, index_t count_1,
    index_t count_2, const BIAS* bias, const RESIDUAL* residual, const float* norm, float eps, Y* y, index_t rows,
    index_t width, index_t groups, index_t group_log2) {
    __shared__ float shown[2][WARPS][16][TILES * 8], squares[ROWS];  // of two tiles in turn
    DYNAMIC_SHARED(dynamic);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, t = lane % 4;
    index_t columns = GATED ? count_0 : count_0 + count_1 + count_2;
    int log2 = min((int)group_log2, 31), bytes = (int)(width / PER_LOAD * 16), steps = (bytes + 127) / 128 * 2;
    int batches = (steps + WARPS * AHEAD - 1) / (WARPS * AHEAD);  // of AHEAD steps, of each warp for a tile

    float* after = (float*)dynamic + steps * 16 * PAIRS * COLUMNS;
    Staged staged = {(unsigned*)dynamic, after, after + steps * ROWS};

    // Find the two rows of W of this lane in a tile; beyond the end, the last again.
    auto find = [&](index_t tile, Row* row) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            index_t n = min(tile * OUTPUTS + g + (GATED ? 0 : 8 * h), columns - 1);
            const W* weights = weights_0;
            const S *scales = scales_0, *shifts = shifts_0;
            if (GATED) {
                if (h) weights = weights_1, scales = scales_1, shifts = shifts_1;
            } else if (n >= count_0 + count_1) {
                weights = weights_2, scales = scales_2, shifts = shifts_2, n -= count_0 + count_1;
            } else if (n >= count_0) {
                weights = weights_1, scales = scales_1, shifts = shifts_1, n -= count_0;
            }
            row[h] = {(const char*)weights + n * bytes, scales + n * groups, SHIFTED ? shifts + n * groups : nullptr};
        }
    };

    start_next_kernel();
    Row row[2];
    Fetched fetched[AHEAD];
    find(blockIdx.x, row);
#pragma unroll
    for (int u = 0; u < AHEAD; u++) fetched[u] = fetch(row, warp + u * WARPS, t, bytes, log2);
    wait_for_previous_kernels();
    stage(x, norm, rows, (int)width, steps, staged, squares);

    int turn = 0;
    for (index_t tile = blockIdx.x; tile * OUTPUTS < columns; tile += gridDim.x, turn ^= 1) {
        float sum[TILES][4] = {};
        for (int batch = 0; batch < batches; batch++) {
            int first = batch * WARPS * AHEAD + warp, following = first + WARPS * AHEAD;
            if (batch == batches - 1) {
                find(tile + gridDim.x, row);
                following = warp;
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                int step = first + u * WARPS;
                if (step < steps) multiply(fetched[u], staged, step, sum);
                fetched[u] = fetch(row, following + u * WARPS, t, bytes, log2);
            }
        }
#pragma unroll
        for (int n = 0; n < TILES; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) shown[turn][warp][g + i / 2 * 8][n * 8 + 2 * t + i % 2] = sum[n][i];
        }
        __syncthreads();
        int output = threadIdx.x / ROWS, r = threadIdx.x % ROWS;  // now one thread per product
        index_t column = tile * OUTPUTS + output;
        if (output < OUTPUTS && r < rows && column < columns) {
            float total = 0.0f, up = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
#pragma unroll
                for (int p = 0; p < PARTS; p++) {
                    total += shown[turn][w][output][r * PARTS + p];
                    if (GATED) up += shown[turn][w][output + 8][r * PARTS + p];
                }
            }
            total = end_product(total, up, squares[r], width, eps, bias, residual, r, columns, column);
            y[r * columns + column] = from_float<Y>(total);
        }
    }
}
