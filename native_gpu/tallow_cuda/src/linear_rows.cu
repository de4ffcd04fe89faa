// y = x · Wᵀ for a few rows of x, where reading W is all the work, as in generating a token.
//
//   x (rows, width), 1 ≤ rows ≤ ROWS;  up to three matrices (count_i, width), whose products are side by side in y
//   (rows, count_0 + count_1 + count_2); everything contiguous
//   NORM:   x is first normalized, x / sqrt(mean(x²) + eps) ⊙ norm; all products of a row have the same divisor, which
//           is applied to them
//   GATED:  y = silu(x · W_0ᵀ) ⊙ (x · W_1ᵀ), (rows, count_0), without a third matrix
//   bias (y's columns), residual (as y) are added; each may be null. y may be the residual
//   X, W, Y, BIAS, RESIDUAL: the element types of x, the matrices, y, the bias and the residual
//
// A warp processes TILE rows of W at once, so that it has 2 · TILE loads of 16 bytes in flight and reads each x only
// once for them, from the L1 cache. If there are too few rows of W to fill the card, `split` warps share them. Blocks
// continue with other rows of W until there are none left.

#include "element.cuh"
#include "memory.cuh"
#include "product_end.cuh"
#include "reduce.cuh"
#include "weights.cuh"

constexpr int WARPS = 4;
constexpr int STEP = 16 / sizeof(W);  // elements of a load
constexpr int UNROLL = 2, SUMS = TILE * ROWS;

// Read STEP elements of x, or of the norm, from a multiple of 16 bytes.
template <class T> __device__ __forceinline__ void read(const T* from, float* to) {
    constexpr int N = 16 / sizeof(T) < STEP ? 16 / sizeof(T) : STEP;
#pragma unroll
    for (int i = 0; i < STEP; i += N) {
        Pack<T, N> pack = *(const Pack<T, N>*)(from + i);
#pragma unroll
        for (int j = 0; j < N; j++) to[i + j] = to_float(pack.at[j]);
    }
}

// The loads of a warp from its rows of W at once.
struct Fetched {
    Words words[UNROLL][TILE];
};

__device__ __forceinline__ void fetch(const W* const* of, index_t i, index_t step, index_t loads, Fetched& fetched) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        index_t at = i + u * step;
        if (at < loads) {
#pragma unroll
            for (int t = 0; t < TILE; t++) fetched.words[u][t] = load_once(of[t] + at * STEP);
        }
    }
}

// Add the products of load `at` of each of the TILE rows to the sums.
__device__ __forceinline__ void multiply(
    const Words* words, const X* const* x, const float* norm, index_t at, float* sum, float* square) {
    float row[ROWS][STEP];
#pragma unroll
    for (int r = 0; r < ROWS; r++) read(x[r] + at * STEP, row[r]);
    if (NORM) {
        float factor[STEP];
        read(norm + at * STEP, factor);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                square[r] += row[r][i] * row[r][i];
                row[r][i] *= factor[i];
            }
        }
    }
#pragma unroll
    for (int t = 0; t < TILE; t++) {
        float weight[STEP];
        unpack<W>(words[t], weight);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int i = 0; i < STEP; i++) sum[t * ROWS + r] += weight[i] * row[r][i];
        }
    }
}

// Add the products of element k of the rows to the sums.
__device__ __forceinline__ void multiply_one(
    const W* const* of, const X* const* x, const float* norm, index_t k, float* sum, float* square) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float value = to_float(x[r][k]);
#if NORM
        square[r] += value * value;
        value *= norm[k];
#endif
#pragma unroll
        for (int t = 0; t < TILE; t++) sum[t * ROWS + r] += to_float(of[t][k]) * value;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    linear_rows(const X* x, const W* weights_0, const W* weights_1, const W* weights_2, index_t count_0,
                index_t count_1, index_t count_2, const BIAS* bias, const RESIDUAL* residual, const float* norm,
                float eps, Y* y, index_t rows, index_t width, index_t split) {
    start_next_kernel();
    __shared__ float shown[WARPS][SUMS + ROWS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, part = warp % (int)split;
    index_t columns = GATED ? count_0 : count_0 + count_1 + count_2;
    constexpr int OUTPUTS = GATED ? TILE / 2 : TILE;
    index_t step = WARP * split, in_block = WARPS / split * OUTPUTS;  // columns
    const X* row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) row[r] = x + min((index_t)r, rows - 1) * width;
    bool aligned_x = aligned<16>((const char*)x) && width % STEP == 0 && (!NORM || aligned<4>(norm));

    for (index_t block = blockIdx.x; block * in_block < columns; block += gridDim.x) {
        index_t first = block * in_block + warp / split * OUTPUTS;
        const W* of[TILE];
        bool packed = aligned_x;
#pragma unroll
        for (int t = 0; t < TILE; t++) {
            index_t n = min(first + (GATED ? t / 2 : t), columns - 1);  // beyond the end, the last row again
            const W* start = weights_0;
            if (GATED) {
                if (t % 2) start = weights_1;
            } else if (n >= count_0 + count_1) {
                start = weights_2, n -= count_0 + count_1;
            } else if (n >= count_0) {
                start = weights_1, n -= count_0;
            }
            of[t] = start + n * width;
            packed = packed && aligned<16>((const char*)of[t]);
        }
        index_t loads = packed ? width / STEP : 0, i = part * WARP + lane;
        Fetched next;
        fetch(of, i, step, loads, next);
        if (block == blockIdx.x) wait_for_previous_kernels();

        float sum[SUMS], square[ROWS];
#pragma unroll
        for (int s = 0; s < SUMS; s++) sum[s] = 0.0f;
#pragma unroll
        for (int r = 0; r < ROWS; r++) square[r] = 0.0f;
        while (i < loads) {
            Fetched now = next;
            fetch(of, i + UNROLL * step, step, loads, next);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                index_t at = i + u * step;
                if (at < loads) multiply(now.words[u], row, norm, at, sum, square);
            }
            i += UNROLL * step;
        }
        for (index_t k = loads * STEP + part * WARP + lane; k < width; k += step)
            multiply_one(of, row, norm, k, sum, square);

#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            sum[s] = warp_reduce<Add>(sum[s]);
            if (lane == 0) shown[warp][s] = sum[s];
        }
        if (NORM) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                square[r] = warp_reduce<Add>(square[r]);
                if (lane == 0) shown[warp][SUMS + r] = square[r];
            }
        }
        __syncthreads();
        int output = lane / ROWS, r = lane % ROWS;  // now one thread per product
        index_t column = first + output;
        if (part == 0 && output < OUTPUTS && r < rows && column < columns) {
            float total = 0.0f, up = 0.0f, squares = 0.0f;
            for (int p = 0; p < split; p++) {
                const float* other = shown[warp + p];
                total += other[(GATED ? 2 * output : output) * ROWS + r];
                if (GATED) up += other[(2 * output + 1) * ROWS + r];
                if (NORM) squares += other[SUMS + r];
            }
            total = end_product(total, up, squares, width, eps, bias, residual, r, columns, column);
            y[r * columns + column] = from_float<Y>(total);
        }
        __syncthreads();  // before the next rows write there
    }
}
