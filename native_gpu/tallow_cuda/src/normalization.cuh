// y = (x - mean) r ⊙ weight + bias,  r = 1 / sqrt(mean((x - mean)²) + eps), over rows; and its gradients.
//
// CENTRED selects layer_norm. Otherwise mean is 0, there is no bias, and it is rms_norm.
//
//   x, y, g, dx (rows, width) contiguous;  weight, bias (width) or null
//   X: the element type of x and y;  W: that of weight and bias;  G: that of g and dx

#pragma once

#include "rows.cuh"

// An aligned row that is kept. The mean is subtracted before squaring: mean(x²) - mean² would cancel for a large mean.
template <bool CENTRED, int N>
__device__ __forceinline__ void normalize_kept(const X* x, const W* weight, const W* bias, X* y, int width,
                                               float eps) {
    Pack<X, N> kept[KEPT / N];
    load_kept(x, width, kept);
    float mean = 0.0f;
    if (CENTRED) {
        float sum = 0.0f;
        each_kept<N>(width, [&](int c, int) {
            auto a = to_floats(kept[c]);
#pragma unroll
            for (int j = 0; j < N; j++) sum += a.at[j];
        });
        mean = row_reduce<Add>(sum) / width;
        stay_packed(kept);
    }
    float squares = 0.0f;
    each_kept<N>(width, [&](int c, int) {
        auto a = to_floats(kept[c]);
#pragma unroll
        for (int j = 0; j < N; j++) squares += (a.at[j] - mean) * (a.at[j] - mean);
    });
    float r = 1.0f / sqrtf(row_reduce<Add>(squares) / width + eps);
    stay_packed(kept);
    each_kept<N>(width, [&](int c, int i) {
        auto n = combine([&](float a) { return (a - mean) * r; }, to_floats(kept[c]));
        if (weight) n = combine([](float a, float w) { return a * w; }, n, load<N>(weight + i, N));
        if (bias) n = combine([](float a, float b) { return a + b; }, n, load<N>(bias + i, N));
        store(y + i, n, N);
    });
}

// Other rows are read again for each step, from the cache of the multiprocessor.
template <bool CENTRED>
__device__ __forceinline__ void normalize(const X* x, const W* weight, const W* bias, X* y, index_t rows, index_t width,
                                          float eps) {
    constexpr int N = widest_pack<X, W>();
    index_t row = row_of_thread();
    if (row >= rows) return;
    x += row * width;
    y += row * width;
    bool packed = all_aligned<N>(x, y) && all_aligned<N>(weight, bias);
    if (packed && width % N == 0 && is_kept(width))
        return normalize_kept<CENTRED, N>(x, weight, bias, y, width, eps);
    float mean = 0.0f;
    if (CENTRED) {
        float sum = 0.0f;
        each<N>(width, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
            auto a = load<N>(x + i, n);
#pragma unroll
            for (int j = 0; j < n; j++) sum += a.at[j];
        });
        mean = row_reduce<Add>(sum) / width;
    }
    float squares = 0.0f;
    each<N>(width, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
        auto a = load<N>(x + i, n);
#pragma unroll
        for (int j = 0; j < n; j++) squares += (a.at[j] - mean) * (a.at[j] - mean);
    });
    float r = 1.0f / sqrtf(row_reduce<Add>(squares) / width + eps);

    each<N>(width, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
        auto a = combine([&](float a) { return (a - mean) * r; }, load<N>(x + i, n));
        if (weight) a = combine([](float a, float w) { return a * w; }, a, load<N>(weight + i, n));
        if (bias) a = combine([](float a, float b) { return a + b; }, a, load<N>(bias + i, n));
        store(y + i, a, n);
    });
}

constexpr int COLUMNS = 8;  // maximum columns per thread in normalize_backward, which stay in registers

// The columns of a row that a thread has: packs of N adjacent ones.
template <int N> struct Columns {
    int width;
    bool packed;  // all rows are aligned, and no pack extends past their end

    // Return the column of register c.
    __device__ __forceinline__ int at(int c) const {
        return (c / N * (int)blockDim.x + (int)threadIdx.x) * N + c % N;
    }

    // Load the pack from register c; columns beyond the row are 0.
    template <class T> __device__ __forceinline__ Pack<float, N> pack(const T* row, int c) const {
        Pack<float, N> values = {};
        if (packed && at(c) < width) values = load<N>(row + at(c), N);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (!packed && at(c) + j < width) values.at[j] = to_float(row[at(c) + j]);
        return values;
    }

    template <class T> __device__ __forceinline__ void read(const T* row, float (&values)[COLUMNS]) const {
#pragma unroll
        for (int c = 0; c < COLUMNS; c += N) {
            auto found = pack(row, c);
#pragma unroll
            for (int j = 0; j < N; j++) values[c + j] = found.at[j];
        }
    }

    template <class T> __device__ __forceinline__ void scale(const T* row, float (&values)[COLUMNS]) const {
#pragma unroll
        for (int c = 0; c < COLUMNS; c += N) {
            auto factors = pack(row, c);
#pragma unroll
            for (int j = 0; j < N; j++) values[c + j] *= factors.at[j];
        }
    }

    template <class T> __device__ __forceinline__ void write(T* row, const float (&values)[COLUMNS]) const {
#pragma unroll
        for (int c = 0; c < COLUMNS; c += N) {
            Pack<float, N> made;
#pragma unroll
            for (int j = 0; j < N; j++) {
                made.at[j] = values[c + j];
                if (!packed && at(c) + j < width) row[at(c) + j] = from_float<T>(values[c + j]);
            }
            if (packed && at(c) < width) store(row + at(c), made, N);
        }
    }
};

// dx = r (h - mean(h) - n mean(h n)),  h = g ⊙ weight,  n = (x - mean) r;  dweight = Σ g n,  dbias = Σ g over the rows.
//
// Each array is read from or written to memory once: a row stays in registers, and so do the sums over the rows of one
// block (or one warp, for narrow rows), which are every rows_of_grid()th. It writes them to `partial` (1 + CENTRED,
// rows_of_grid(), width), which column_sums adds: the same bits every time, unlike atomic additions.
//
// width ≤ COLUMNS · blockDim.x
template <bool CENTRED>
__device__ __forceinline__ void normalize_backward(const G* g, const X* x, const W* weight, G* dx, float* partial,
                                                   index_t rows, index_t width, float eps) {
    constexpr int N = widest_pack<G, X, W>();
    Columns<N> columns = {(int)width, width % N == 0 && all_aligned<N>(g, x) && all_aligned<N>(weight, dx)};
    float sum_gn[COLUMNS] = {}, sum_g[COLUMNS] = {};
    for (index_t row = row_of_thread(); row < rows; row += rows_of_grid()) {
        float n[COLUMNS], h[COLUMNS];
        columns.read(x + row * width, n);
        columns.read(g + row * width, h);
        float mean = 0.0f;
        if (CENTRED) {
            float sum = 0.0f;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) sum += n[c];
            mean = row_reduce<Add>(sum) / width;
        }
        float squares = 0.0f;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            n[c] = columns.at(c) < width ? n[c] - mean : 0.0f;
            squares += n[c] * n[c];
        }
        float r = 1.0f / sqrtf(row_reduce<Add>(squares) / width + eps);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            n[c] *= r;
            sum_gn[c] += h[c] * n[c];
            if (CENTRED) sum_g[c] += h[c];
        }
        if (weight) columns.scale(weight, h);
        float mean_h = 0.0f, mean_hn = 0.0f;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            mean_h += h[c];
            mean_hn += h[c] * n[c];
        }
        mean_hn = row_reduce<Add>(mean_hn) / width;
        mean_h = CENTRED ? row_reduce<Add>(mean_h) / width : 0.0f;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) h[c] = r * (h[c] - mean_h - n[c] * mean_hn);
        columns.write(dx + row * width, h);
    }
    partial += row_of_thread() * width;
    columns.write(partial, sum_gn);
    if (CENTRED) columns.write(partial + rows_of_grid() * width, sum_g);
}
