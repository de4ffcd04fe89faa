// y = x · Wᵀ for a few rows of x, where reading W is all the work: what a model does for each token it makes.
//
//   x (rows, width), 1 ≤ rows ≤ ROWS;  up to three matrices (count_i, width), one below the other, whose products lie side
//   by side in y (rows, count_0 + count_1 + count_2); everything contiguous
//   NORM:   x is first normalised, x / sqrt(mean(x²) + eps) ⊙ norm; the divisor is the same for all of a row's products,
//           so it is applied to them
//   GATED:  y = silu(x · W_0ᵀ) ⊙ (x · W_1ᵀ), (rows, count_0), and there is no third matrix
//   bias (y's columns), residual (as y) are added; each may be null. y may be the residual
//   W:      float, f16 or bf16;  or int8, or int4x2 with width a multiple of 32, each times the scale of its group of
//           2^group_log2 neighbours in the row, scales_i (count_i, groups); matrices and x then begin at multiples of 16
//           bytes
//   X, Y, S, BIAS, RESIDUAL: the elements of x, y, the scales, the bias and the residual
//
// A warp takes TILE rows of W at once, so that it has 2 · TILE loads of 16 bytes under way and needs each x but once for
// them; x comes from the first cache. Where there are too few rows of W to fill the card, `split` warps share them.

#include "element.cuh"
#include "reduce.cuh"
#include "weights.cuh"

constexpr int WARPS = 4;
typedef Weights<W> Format;
constexpr int STEP = Format::STEP, PER_LOAD = Format::PER_LOAD;
constexpr int UNROLL = 2, SUMS = TILE * ROWS;

struct Matrix {
    const W* weights;
    const S* scales;
};

// STEP elements of x, or of the norm, from a multiple of 16 bytes on.
template <class T> __device__ __forceinline__ void read(const T* from, float* to) {
    constexpr int N = 16 / sizeof(T) < STEP ? 16 / sizeof(T) : STEP;
#pragma unroll
    for (int i = 0; i < STEP; i += N) {
        Pack<T, N> pack = *(const Pack<T, N>*)(from + i);
#pragma unroll
        for (int j = 0; j < N; j++) to[i + j] = to_float(pack.at[j]);
    }
}

// Add to the sums what 16 bytes of each of the TILE rows give, from element k of the rows on.
__device__ __forceinline__ void multiply(
    const Words* words, const float* scale, const X* const* x, const float* norm, index_t k, float* sum, float* square) {
#pragma unroll
    for (int step = 0; step < PER_LOAD / STEP; step++) {
        float row[ROWS][STEP];
#pragma unroll
        for (int r = 0; r < ROWS; r++) read(x[r] + k + step * STEP, row[r]);
#if NORM
        float factor[STEP];
        read(norm + k + step * STEP, factor);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                square[r] += row[r][i] * row[r][i];
                row[r][i] *= factor[i];
            }
        }
#endif
#pragma unroll
        for (int t = 0; t < TILE; t++) {
            float weight[STEP];
            Format::unpack(words[t], step, weight);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float part = Format::QUANTIZED ? 0.0f : sum[t * ROWS + r];
#pragma unroll
                for (int i = 0; i < STEP; i++) part += weight[i] * row[r][i];
                sum[t * ROWS + r] = Format::QUANTIZED ? sum[t * ROWS + r] + scale[t] * part : part;
            }
        }
    }
}

// Add to the sums what element k of the rows gives. Quantized rows are whole numbers of loads.
template <class T>
__device__ __forceinline__ void multiply_one(
    const Matrix* of, const X* const* x, const float* norm, index_t k, float* sum, float* square) {
    if constexpr (!Weights<T>::QUANTIZED) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float value = to_float(x[r][k]);
#if NORM
            square[r] += value * value;
            value *= norm[k];
#endif
#pragma unroll
            for (int t = 0; t < TILE; t++) sum[t * ROWS + r] += to_float(((const T*)of[t].weights)[k]) * value;
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) linear_rows(
    const X* x, const W* weights_0, const W* weights_1, const W* weights_2, const S* scales_0, const S* scales_1,
    const S* scales_2, index_t count_0, index_t count_1, index_t count_2, const BIAS* bias, const RESIDUAL* residual,
    const float* norm, float eps, Y* y, index_t rows, index_t width, index_t groups, index_t group_log2, index_t split) {
    __shared__ float shown[WARPS][SUMS + ROWS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, part = warp % (int)split;
    index_t columns = GATED ? count_0 : count_0 + count_1 + count_2;
    constexpr int OUTPUTS = GATED ? TILE / 2 : TILE;
    index_t first = (blockIdx.x * (WARPS / split) + warp / split) * OUTPUTS;

    Matrix of[TILE];
    index_t stride = width * (index_t)sizeof(W) / (PER_LOAD == 32 ? 2 : 1);  // bytes of a row
#pragma unroll
    for (int t = 0; t < TILE; t++) {
        index_t n = min(first + (GATED ? t / 2 : t), columns - 1);  // beyond the end the last row once more
        const W* start = weights_0;
        const S* scales = scales_0;
        if (GATED) {
            if (t % 2) start = weights_1, scales = scales_1;
        } else if (n >= count_0 + count_1) {
            start = weights_2, scales = scales_2, n -= count_0 + count_1;
        } else if (n >= count_0) {
            start = weights_1, scales = scales_1, n -= count_0;
        }
        of[t].weights = (const W*)((const char*)start + n * stride);
        of[t].scales = scales + n * groups;
    }
    const X* row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) row[r] = x + min((index_t)r, rows - 1) * width;

    float sum[SUMS], square[ROWS];
#pragma unroll
    for (int i = 0; i < SUMS; i++) sum[i] = 0.0f;
#pragma unroll
    for (int r = 0; r < ROWS; r++) square[r] = 0.0f;

    bool packed = aligned<16>((const char*)x) && width % STEP == 0 && (!NORM || aligned<4>(norm));
#pragma unroll
    for (int t = 0; t < TILE; t++) packed = packed && aligned<16>((const char*)of[t].weights);
    index_t loads = packed ? width / PER_LOAD : 0, step = WARP * split;
    for (index_t i = part * WARP + lane; i < loads; i += UNROLL * step) {
        Words words[UNROLL][TILE];
        float scale[UNROLL][TILE];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            index_t at = i + u * step;
            if (at < loads) {
#pragma unroll
                for (int t = 0; t < TILE; t++) {
                    words[u][t] = load_once((const char*)of[t].weights + at * 16);
                    scale[u][t] = Format::QUANTIZED ? to_float(of[t].scales[at * PER_LOAD >> group_log2]) : 1.0f;
                }
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            index_t at = i + u * step;
            if (at < loads) multiply(words[u], scale[u], row, norm, at * PER_LOAD, sum, square);
        }
    }
    for (index_t k = loads * PER_LOAD + part * WARP + lane; k < width; k += step)
        multiply_one<W>(of, row, norm, k, sum, square);

#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        sum[i] = warp_reduce<Add>(sum[i]);
        if (lane == 0) shown[warp][i] = sum[i];
    }
#if NORM
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        square[r] = warp_reduce<Add>(square[r]);
        if (lane == 0) shown[warp][SUMS + r] = square[r];
    }
#endif
    __syncthreads();
    if (part != 0 || lane >= OUTPUTS * ROWS) return;  // now a thread for each product

    int output = lane / ROWS, r = lane % ROWS;
    index_t column = first + output;
    if (r >= rows || column >= columns) return;
    float total = 0.0f, up = 0.0f, squares = 0.0f;
    for (int p = 0; p < split; p++) {
        const float* other = shown[warp + p];
        total += other[(GATED ? 2 * output : output) * ROWS + r];
        if (GATED) up += other[(2 * output + 1) * ROWS + r];
        if (NORM) squares += other[SUMS + r];
    }
    if (NORM) {
        float divisor = 1.0f / sqrtf(squares / width + eps);
        total *= divisor;
        up *= divisor;
    }
    if (GATED) total = total / (1.0f + expf(-total)) * up;
    if (bias) total += to_float(bias[column]);
    if (residual) total += to_float(residual[r * columns + column]);
    y[r * columns + column] = from_float<Y>(total);
}
