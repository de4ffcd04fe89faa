// y = x @ wᵀ + bias with a matrix of any format, for the fused blocks; contracts in kernels.h, linear.h and
// quantized_linear.h.
#include "runtime/kernels.h"

void linear_of_floats(float *y, const float *x, const void *w, const float *bias, int32_t format, size_t m, size_t k,
                      size_t n, size_t y_row) {
  if (format == FLOAT32) tl_linear_f32(y, x, w, bias, m, k, n, (ptrdiff_t)k, y_row);
  if (format == FLOAT16) tl_linear_f16(y, x, w, bias, m, k, n, (ptrdiff_t)k, y_row);
  if (format == BFLOAT16) tl_linear_bf16(y, x, w, bias, m, k, n, (ptrdiff_t)k, y_row);
}
