// Sums over the rows of matrices: out[m, c] = Σ_r x[m, r, c], in an order that depends on the shape alone.
//
//   x (rows, width), float32 contiguous; matrix m has the rows from m · `each`, `each` of them, or what is left
//   out (matrices, width)
//   block (32, LANES): a warp reads 32 adjacent columns of a row, LANES rows at a time; grid (width / 32, matrices)

#include "element.cuh"

constexpr int LANES = 16;

extern "C" __global__ void column_sums(const float* x, float* out, index_t rows, index_t each, index_t width) {
    __shared__ float partial[LANES][32];
    index_t column = (index_t)blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * each;
    index_t last = min(first + each, rows);
    float sum = 0.0f;
    if (column < width) {
#pragma unroll 8
        for (index_t row = first + threadIdx.y; row < last; row += LANES) sum += x[row * width + column];
    }
    partial[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || column >= width) return;
    for (int lane = 1; lane < LANES; lane++) sum += partial[lane][threadIdx.x];
    out[blockIdx.y * width + column] = sum;
}
