// What follows the sums of a product of few rows; see linear_rows.cu for NORM, GATED and the arguments.

#pragma once

#include "element.cuh"

// Return the element of y at r · columns + column, given its sum, that of the other matrix of a gate, and Σ x² of row r.
__device__ __forceinline__ float end_product(float total, float up, float squares, index_t width, float eps,
                                             const BIAS* bias, const RESIDUAL* residual, index_t r, index_t columns,
                                             index_t column) {
    if (NORM) {
        float divisor = 1.0f / sqrtf(squares / width + eps);
        total *= divisor;
        up *= divisor;
    }
    if (GATED) total = total / (1.0f + expf(-total)) * up;
    if (bias) total += to_float(bias[column]);
    if (residual) total += to_float(residual[r * columns + column]);
    return total;
}
