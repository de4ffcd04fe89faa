// Draw the elements that dropout keeps, and apply the mask.
//
//   keep (size) of bytes, 0 or 1;  x, y (size), X: their element type; all contiguous

#include "elementwise.cuh"
#include "philox.cuh"

struct byte {
    unsigned char bits;
};

__device__ __forceinline__ float to_float(byte x) { return x.bits; }

// keep[i] is 0 if word i of the stream is below `least`, which is the probability times 2³². Each counter value,
// starting at `first`, gives four words.
extern "C" __global__ void random_keep(unsigned char* keep, index_t size, index_t key, index_t first, index_t least) {
    for (index_t i = thread_of_grid() * 4; i < size; i += threads_of_grid() * 4) {
        unsigned long long counter = first + i / 4;
        Words4 words = philox({{(unsigned)counter, (unsigned)(counter >> 32), 0u, 0u}}, (unsigned long long)key);
        Pack<unsigned char, 4> kept;
#pragma unroll
        for (int j = 0; j < 4; j++) kept.at[j] = words.at[j] >= (unsigned long long)least;
        if (i + 4 <= size && aligned<4>(keep)) {
            *(Pack<unsigned char, 4>*)(keep + i) = kept;
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (i + j < size) keep[i + j] = kept.at[j];
        }
    }
}

// y = x · scale where kept, else 0 (NaN and ∞ times 0 are NaN, as in a product with the mask)
extern "C" __global__ void scaled_mask(const X* x, const byte* keep, X* y, index_t size, float scale) {
    map(size, [&](float x, float keep) { return x * keep * scale; }, y, x, keep);
}
