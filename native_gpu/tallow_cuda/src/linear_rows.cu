// y = x · Wᵀ for a few rows of x, where reading W is all the work, as in generating a token.
//
//   x (rows, width), 1 ≤ rows ≤ ROWS;  up to three matrices (count_i, width), whose products are side by side in y
//   (rows, count_0 + count_1 + count_2); everything contiguous
//   NORM:   x is first normalized, x / sqrt(mean(x²) + eps) ⊙ norm; all products of a row have the same divisor, which
//           is applied to them
//   GATED:  y = silu(x · W_0ᵀ) ⊙ (x · W_1ᵀ), (rows, count_0), without a third matrix
//   bias (y's columns), residual (as y) are added; each may be null. y may be the residual
//   W:      float, f16 or bf16;  or int8, or int4x2 with width a multiple of 32, each multiplied by the scale of its
//           group of 2^group_log2 adjacent elements in the row, scales_i (count_i, groups); matrices and x then begin
//           at multiples of 16 bytes
//   X, Y, S, BIAS, RESIDUAL: the element types of x, y, the scales, the bias and the residual
//
// A warp processes TILE rows of W at once, so that it has 2 · TILE loads of 16 bytes in flight and reads each x only
// once for them. If there are too few rows of W to fill the card, `split` warps share them. Blocks continue with other
// rows of W until there are none left.
//
// With float weights, a lane has 4 or 8 adjacent ones, and reads their x from the L1 cache. With quantized weights it
// has 16 or 32, and lanes would be so far apart in x that their reads conflict. So a block first stores x, times the
// norm, in shared memory, in the order in which lanes read it: ROWS · width floats, the width rounded up to whole
// warps.

#include "element.cuh"
#include "memory.cuh"
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

constexpr bool STAGED = Format::QUANTIZED;
constexpr int QUARTERS = PER_LOAD / 4;  // per load: four x are read at once

// Return the position in shared memory of the four x of quarter `quarter` of load `at`.
__device__ __forceinline__ index_t staged_at(index_t at, int quarter) {
    return ((at / WARP * QUARTERS + quarter) * WARP + at % WARP) * 4;
}

// Store x, times the norm, in shared memory, by all threads of the block; returns the sum of x² in `square`.
__device__ __forceinline__ void stage(
    const X* const* x, const float* norm, index_t width, index_t row_floats, float* staged, float* square) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        for (index_t k = threadIdx.x * 4; k < width; k += 4 * blockDim.x) {
            float* to = staged + r * row_floats + staged_at(k / PER_LOAD, k % PER_LOAD / 4);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float value = to_float(x[r][k + i]);
                square[r] += value * value;
                to[i] = NORM ? value * norm[k + i] : value;
            }
        }
        if (NORM) square[r] = block_reduce<Add>(square[r]);
    }
    __syncthreads();
}

// The loads of a warp from its rows of W at once.
struct Fetched {
    Words words[UNROLL][TILE];
    float scale[UNROLL][TILE];
};

__device__ __forceinline__ void fetch(
    const Matrix* of, index_t i, index_t step, index_t loads, index_t group_log2, Fetched& fetched) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        index_t at = i + u * step;
        if (at < loads) {
#pragma unroll
            for (int t = 0; t < TILE; t++) {
                fetched.words[u][t] = load_once((const char*)of[t].weights + at * 16);
                fetched.scale[u][t] = Format::QUANTIZED ? to_float(of[t].scales[at * PER_LOAD >> group_log2]) : 1.0f;
            }
        }
    }
}

// Add the products of load `at` of each of the TILE rows to the sums.
__device__ __forceinline__ void multiply(const Words* words, const float* scale, const X* const* x, const float* staged,
                                         index_t row_floats, const float* norm, index_t at, float* sum, float* square) {
#pragma unroll
    for (int step = 0; step < PER_LOAD / STEP; step++) {
        float row[ROWS][STEP];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (STAGED) {
#pragma unroll
                for (int i = 0; i < STEP; i += 4) {
                    const float* from = staged + r * row_floats + staged_at(at, (step * STEP + i) / 4);
                    Pack<float, 4> pack = *(const Pack<float, 4>*)from;
#pragma unroll
                    for (int j = 0; j < 4; j++) row[r][i + j] = pack.at[j];
                }
            } else {
                read(x[r] + at * PER_LOAD + step * STEP, row[r]);
            }
        }
        if (NORM && !STAGED) {
            float factor[STEP];
            read(norm + at * PER_LOAD + step * STEP, factor);
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

// Add the products of element k of the rows to the sums. Quantized rows are whole numbers of loads.
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
    DYNAMIC_SHARED(dynamic);
    float* staged = (float*)dynamic;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, part = warp % (int)split;
    index_t columns = GATED ? count_0 : count_0 + count_1 + count_2;
    constexpr int OUTPUTS = GATED ? TILE / 2 : TILE;
    index_t stride = width * (index_t)sizeof(W) / (PER_LOAD == 32 ? 2 : 1);  // bytes of a row of W
    index_t row_floats = (width + WARP * PER_LOAD - 1) / (WARP * PER_LOAD) * (WARP * PER_LOAD), step = WARP * split;
    index_t in_block = WARPS / split * OUTPUTS;  // columns
    const X* row[ROWS];
    float square[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        row[r] = x + min((index_t)r, rows - 1) * width;
        square[r] = 0.0f;
    }
    bool aligned_x = STAGED || (aligned<16>((const char*)x) && width % STEP == 0 && (!NORM || aligned<4>(norm)));

    for (index_t block = blockIdx.x; block * in_block < columns; block += gridDim.x) {
        index_t first = block * in_block + warp / split * OUTPUTS;
        Matrix of[TILE];
        bool packed = aligned_x;
#pragma unroll
        for (int t = 0; t < TILE; t++) {
            index_t n = min(first + (GATED ? t / 2 : t), columns - 1);  // beyond the end, the last row again
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
            packed = packed && aligned<16>((const char*)of[t].weights);
        }
        index_t loads = packed ? width / PER_LOAD : 0, i = part * WARP + lane;
        Fetched next;
        fetch(of, i, step, loads, group_log2, next);
        if (STAGED && block == blockIdx.x) stage(row, norm, width, row_floats, staged, square);

        float sum[SUMS];
#pragma unroll
        for (int s = 0; s < SUMS; s++) sum[s] = 0.0f;
        if (!STAGED) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) square[r] = 0.0f;
        }
        while (i < loads) {
            Fetched now = next;
            fetch(of, i + UNROLL * step, step, loads, group_log2, next);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                index_t at = i + u * step;
                if (at < loads) multiply(now.words[u], now.scale[u], row, staged, row_floats, norm, at, sum, square);
            }
            i += UNROLL * step;
        }
        for (index_t k = loads * PER_LOAD + part * WARP + lane; k < width; k += step)
            multiply_one<W>(of, row, norm, k, sum, square);

#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            sum[s] = warp_reduce<Add>(sum[s]);
            if (lane == 0) shown[warp][s] = sum[s];
        }
        if (NORM) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float squares = STAGED ? square[r] / split : warp_reduce<Add>(square[r]);
                if (lane == 0) shown[warp][SUMS + r] = squares;
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
        __syncthreads();  // before the next rows write there
    }
}
