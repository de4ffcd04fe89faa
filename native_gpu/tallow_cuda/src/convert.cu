// y = x in another float dtype, rounded to nearest even.
//
//   x, y (size) contiguous;  X, Y: their element types

#include "elementwise.cuh"

extern "C" __global__ void convert(const X* x, Y* y, index_t size) {
    map(size, [](float value) { return value; }, y, x);
}
