// The cross-entropy of rows of logits x against the class y of each row, and its gradient; one block per row.
//
//   loss = w_y (L - x_y) (1 - ε) + Σ_c w_c (L - x_c) ε / width,   L = log Σ_c exp(x_c) = highest + log(total)
//   dx_c = g (F exp(x_c - highest) / total - [c = y] w_y (1 - ε) - w_c ε / width),   F = w_y (1 - ε) + Σ_c w_c ε / width
//
//   x (rows, width) contiguous;  target (rows);  weight (width), or null for ones;  weights: Σ_c w_c, or null for width
//   losses, share, highest, total (rows): share is w_y, whose sum divides a mean
//   g (rows), or one number for all rows if g_step is 0;  dx (rows, width) contiguous
//   X: the element type of x;  G: that of dx
//
// A row whose target is `ignored` has a loss, a share and a gradient of 0. A target out of range makes them NaN.
// Forward reads x once, with a maximum and a sum in every thread, which are combined at the end (Milakov &
// Gimelshein 2018, arXiv:1805.02867, section 3.1). Backward reads x once and writes dx.

#include "element.cuh"
#include "reduce.cuh"

constexpr int N = 16 / sizeof(X);

// A row as threads iterate over it: rows of odd lengths start at any alignment, so there are single elements before the
// first pack and after the last. If packs of x are aligned, those of `other`, an array of the same shape, must be
// aligned too.
struct Split {
    int head, packs, width;

    template <class T> __device__ Split(const X* x, const T* other, index_t start, int width) : width(width) {
        bool packed = aligned<N>(x) && aligned<N>(other);
        head = packed ? min((int)((N - start % N) % N), width) : width;
        packs = (width - head) / N;
    }

    // Call each(pack, c) for all packs, and for single elements as packs of one; c is the class of the first element
    template <class Each> __device__ __forceinline__ void go(const X* row, Each& each) const {
        for (int c = threadIdx.x; c < head; c += blockDim.x) each(*(const Pack<X, 1>*)(row + c), c);
#pragma unroll 4
        for (int i = threadIdx.x; i < packs; i += blockDim.x)
            each(*(const Pack<X, N>*)(row + head + i * N), head + i * N);
        for (int c = head + packs * N + threadIdx.x; c < width; c += blockDim.x)
            each(*(const Pack<X, 1>*)(row + c), c);
    }
};

// The partial results of a thread for a row.
template <bool Smooth> struct Seen {
    const float* weight;
    float anchor;
    float highest = Max::identity(), total = 0.0f;  // Σ exp(x_c - highest)
    float spread = 0.0f;                            // Σ w_c (x_c - anchor)

    template <int M> __device__ __forceinline__ void operator()(const Pack<X, M>& pack, int c) {
        float before = highest;
#pragma unroll
        for (int j = 0; j < M; j++) highest = fmaxf(highest, to_float(pack.at[j]));
        float shift = highest == Max::identity() ? 0.0f : highest;  // subtracting -infinity would give NaN
        total *= __expf(before - shift);
#pragma unroll
        for (int j = 0; j < M; j++) {
            float x = to_float(pack.at[j]);
            total += __expf(x - shift);
            if (Smooth) spread += (weight ? weight[c + j] : 1.0f) * (x - anchor);
        }
    }

    __device__ void bring_together() {
        float before = highest;
        highest = block_reduce<Max>(before);
        total = block_reduce<Add>(before == Max::identity() ? total : total * __expf(before - highest));
        if (Smooth) spread = block_reduce<Add>(spread);
    }
};

template <bool Smooth> __device__ Seen<Smooth> see(const Split& split, const X* row, float anchor, const float* weight) {
    Seen<Smooth> seen{weight, anchor};
    split.go(row, seen);
    seen.bring_together();
    return seen;
}

extern "C" __global__ void cross_entropy(
    const X* x, const index_t* target, const float* weight, const float* weights, float* losses, float* share,
    float* highest, float* total, index_t width, index_t ignored, float smoothing) {
    index_t row = blockIdx.x, y = target[row];
    bool leader = threadIdx.x == 0;
    if (y == ignored || y < 0 || y >= width) {
        if (leader) {
            losses[row] = share[row] = y == ignored ? 0.0f : __uint_as_float(0x7fc00000u);
            highest[row] = 0.0f;
            total[row] = 1.0f;
        }
        return;
    }
    Split split(x, x, row * width, (int)width);
    x += row * width;
    float x_y = to_float(x[y]);
    float anchor = fabsf(x_y) < 3e38f ? x_y : 0.0f;  // so that a large common offset does not swamp their differences
    float top, sum, spread = 0.0f;
    if (smoothing) {
        Seen<true> seen = see<true>(split, x, anchor, weight);
        top = seen.highest, sum = seen.total, spread = seen.spread;
    } else {
        Seen<false> seen = see<false>(split, x, anchor, weight);
        top = seen.highest, sum = seen.total;
    }
    if (leader) {
        float log_sum = logf(sum), w = weight ? weight[y] : 1.0f;
        float loss = w * (log_sum - (x_y - top)) * (1.0f - smoothing);
        if (smoothing) {
            float all = weights ? *weights : (float)width;
            loss += (all * (log_sum + (top - anchor)) - spread) * (smoothing / width);
        }
        losses[row] = loss;
        share[row] = w;
        highest[row] = top;
        total[row] = sum;
    }
}

// Writes the gradient of a thread's part of a row.
template <bool Smooth> struct Gradient {
    G* dx;
    const float* weight;
    float highest, factor, hit, spread;
    int y;

    template <int M> __device__ __forceinline__ void operator()(const Pack<X, M>& pack, int c) {
        Pack<G, M> d;
#pragma unroll
        for (int j = 0; j < M; j++) {
            float value = __expf(to_float(pack.at[j]) - highest) * factor;
            if (c + j == y) value -= hit;
            if (Smooth) value -= spread * (weight ? weight[c + j] : 1.0f);
            d.at[j] = from_float<G>(value);
        }
        *(Pack<G, M>*)(dx + c) = d;
    }
};

extern "C" __global__ void cross_entropy_backward(
    const float* g, index_t g_step, const X* x, const index_t* target, const float* weight, const float* weights,
    const float* highest, const float* total, G* dx, index_t width, index_t ignored, float smoothing) {
    index_t row = blockIdx.x, y = target[row];
    Split split(x, dx, row * width, (int)width);
    x += row * width;
    dx += row * width;
    if (y == ignored || y < 0 || y >= width) {
        G same = from_float<G>(y == ignored ? 0.0f : __uint_as_float(0x7fc00000u));
        for (index_t c = threadIdx.x; c < width; c += blockDim.x) dx[c] = same;
        return;
    }
    float upstream = g[row * g_step];
    float hit = upstream * (weight ? weight[y] : 1.0f) * (1.0f - smoothing), spread = upstream * (smoothing / width);
    float factor = (hit + spread * (weights ? *weights : (float)width)) / total[row];
    if (smoothing) {
        Gradient<true> gradient{dx, weight, highest[row], factor, hit, spread, (int)y};
        split.go(x, gradient);
    } else {
        Gradient<false> gradient{dx, weight, highest[row], factor, hit, spread, (int)y};
        split.go(x, gradient);
    }
}
