// y = softmax(x) over rows, or its logarithm, and the gradient.
//
//   x, y, g, dx (rows, width) contiguous;  sums (rows, parts, 2) float
//   X: the element type of x and y;  G: that of g and dx;  LOGARITHM: 1 for log_softmax, else 0
//
// Aligned rows are kept in registers. Of others, and longer ones, the maximum and the sum of exponentials are computed
// together, in one pass: at a new maximum, the sum so far is rescaled to it (Milakov & Gimelshein 2018, arXiv:1805.02867).
// A second pass, from the cache if the row fits, writes. Few long rows, such as logits, would leave most of the card
// idle; they are split into parts: softmax_sums computes the maximum and sum of each, softmax_of_parts combines them and
// writes.

#include "rows.cuh"

// Σ exp(x - highest); without elements, highest is -∞ and the sum 0.
struct Exponentials {
    float highest, sum;
};

// With 0 instead of -∞ as the highest, exp(-∞ - highest) is 0. NaN shows in the sum, not in the maximum.
__device__ __forceinline__ float finite(float highest) { return highest == Max::identity() ? 0.0f : highest; }

// Combine all threads of the row; every thread gets the result.
__device__ __forceinline__ Exponentials together(Exponentials own) {
    float highest = row_reduce<Max>(own.highest);
    return {highest, row_reduce<Add>(own.sum * expf(own.highest - finite(highest)))};
}

__device__ __forceinline__ Exponentials exponentials(const X* x, index_t width) {
    constexpr int N = widest_pack<X>();
    Exponentials own = {Max::identity(), 0.0f};
    each<N>(width, aligned<N>(x), threadIdx.x, blockDim.x, [&](index_t i, int n) {
        auto a = load<N>(x + i, n);
        float highest = own.highest;
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < n) highest = fmaxf(highest, a.at[j]);
        float shift = finite(highest);
        own.sum *= expf(own.highest - shift);
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < n) own.sum += expf(a.at[j] - shift);
        own.highest = highest;
    });
    return together(own);
}

__device__ __forceinline__ void write(const X* x, X* y, index_t width, Exponentials of_row) {
    constexpr int N = widest_pack<X>();
    float highest = of_row.highest, factor = 1.0f / of_row.sum, logarithm = logf(of_row.sum);
    each<N>(width, all_aligned<N>(x, y), threadIdx.x, blockDim.x, [&](index_t i, int n) {
        auto value = [&](float a) { return LOGARITHM ? a - highest - logarithm : expf(a - highest) * factor; };
        store(y + i, combine(value, load<N>(x + i, n)), n);
    });
}

template <int N> __device__ __forceinline__ void softmax_kept(const X* x, X* y, int width) {
    Pack<X, N> kept[KEPT / N];
    load_kept(x, width, kept);
    Pack<float, N> a[KEPT / N];
    float highest = Max::identity(), sum = 0.0f;
    each_kept<N>(width, [&](int c, int) {
        a[c] = to_floats(kept[c]);
#pragma unroll
        for (int j = 0; j < N; j++) highest = fmaxf(highest, a[c].at[j]);
    });
    highest = finite(row_reduce<Max>(highest));
    each_kept<N>(width, [&](int c, int) {
#pragma unroll
        for (int j = 0; j < N; j++) {
            float power = expf(a[c].at[j] - highest);
            sum += power;
            a[c].at[j] = LOGARITHM ? a[c].at[j] - highest : power;
        }
    });
    sum = row_reduce<Add>(sum);
    float factor = 1.0f / sum, logarithm = logf(sum);
    each_kept<N>(width, [&](int c, int i) {
        store(y + i, combine([&](float a) { return LOGARITHM ? a - logarithm : a * factor; }, a[c]), N);
    });
}

extern "C" __global__ void __launch_bounds__(1024) softmax(const X* x, X* y, index_t rows, index_t width) {
    constexpr int N = widest_pack<X>();
    index_t row = row_of_thread();
    if (row >= rows) return;
    x += row * width;
    y += row * width;
    if (all_aligned<N>(x, y) && width % N == 0 && is_kept(width)) return softmax_kept<N>(x, y, width);
    write(x, y, width, exponentials(x, width));
}

// Part blockIdx.x of row blockIdx.y begins at a multiple of UNIT, so that it is aligned like the row.
constexpr index_t UNIT = 64;

struct Part {
    index_t start, width;
};

__device__ __forceinline__ Part part_of_block(index_t width) {
    index_t most = (width + gridDim.x * UNIT - 1) / (gridDim.x * UNIT) * UNIT, start = blockIdx.x * most;
    return {start, start < width ? min(most, width - start) : 0};
}

extern "C" __global__ void softmax_sums(const X* x, float* sums, index_t width) {
    Part part = part_of_block(width);
    Exponentials own = exponentials(x + blockIdx.y * width + part.start, part.width);
    sums += (blockIdx.y * (index_t)gridDim.x + blockIdx.x) * 2;
    if (threadIdx.x == 0) {
        sums[0] = own.highest;
        sums[1] = own.sum;
    }
}

extern "C" __global__ void softmax_of_parts(const X* x, const float* sums, X* y, index_t width) {
    Part part = part_of_block(width);
    sums += blockIdx.y * (index_t)gridDim.x * 2;
    Exponentials own = {Max::identity(), 0.0f};
    if (threadIdx.x < gridDim.x) own = {sums[threadIdx.x * 2], sums[threadIdx.x * 2 + 1]};  // parts ≤ blockDim.x
    index_t start = blockIdx.y * width + part.start;
    write(x + start, y + start, part.width, together(own));
}

// dx = y ⊙ (g - Σ g y);  for the logarithm, g - exp(y) Σ g
extern "C" __global__ void softmax_backward(const G* g, const X* y, G* dx, index_t rows, index_t width) {
    constexpr int N = widest_pack<G, X>();
    index_t row = row_of_thread();
    if (row >= rows) return;
    g += row * width;
    y += row * width;
    dx += row * width;
    bool packed = all_aligned<N>(g, dx) && aligned<N>(y);
    float sum = 0.0f;
    each<N>(width, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
        auto a = load<N>(g + i, n);
        if (!LOGARITHM) a = combine([](float g, float y) { return g * y; }, a, load<N>(y + i, n));
#pragma unroll
        for (int j = 0; j < N; j++) sum += a.at[j];
    });
    sum = row_reduce<Add>(sum);
    each<N>(width, packed, threadIdx.x, blockDim.x, [&](index_t i, int n) {
        auto slope = [&](float g, float y) { return LOGARITHM ? g - expf(y) * sum : y * (g - sum); };
        store(dx + i, combine(slope, load<N>(g + i, n), load<N>(y + i, n)), n);
    });
}
