// to[r, c] = from[r, c], where the rows of either matrix may be further apart than they are wide.
//
//   elements of 16 bits; the steps from one row to the next are in elements; one block per row
//
// Warps read and write adjacent elements one by one, at any address; that reaches the bandwidth of the memory.

#include "element.cuh"

extern "C" __global__ void copy_rows(const unsigned short* from, unsigned short* to, index_t width, index_t from_step,
                                     index_t to_step) {
    from += blockIdx.x * from_step;
    to += blockIdx.x * to_step;
#pragma unroll 8
    for (index_t c = threadIdx.x; c < width; c += blockDim.x) to[c] = from[c];
}
