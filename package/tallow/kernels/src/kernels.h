// The kernels that other kernels are made of; each one's contract stands on top of its own file.

#ifndef TALLOW_KERNELS_H
#define TALLOW_KERNELS_H

#include "vec.h"

typedef struct {
  const void *weight; // of a matrix (out, in), or a norm (out,)
  const float *bias;  // (out,)
} affine;

EXPORT void tl_softmax_f32(float *y, const float *x, size_t rows, size_t n);
EXPORT void tl_rms_norm_f32(float *y, const float *x, const float *w, size_t rows, size_t n, float eps);
EXPORT void tl_layer_norm_f32(float *y, const float *x, const float *w, const float *b, size_t rows, size_t n, float eps);
EXPORT void tl_gelu_f32(float *y, const float *x, size_t n);
EXPORT void tl_silu_mul_f32(float *y, const float *a, const float *b, size_t n);
EXPORT void tl_rotary_f32(float *y, const float *x, const float *cos, const float *sin, size_t lead, size_t t, size_t k,
                          int interleaved);
EXPORT void tl_attention_decode_f32(float *y, const float *q, const float *k, const float *v, size_t batch, size_t heads,
                                    size_t kv_heads, size_t s, size_t width, const ptrdiff_t *k_stride,
                                    const ptrdiff_t *v_stride, float scale, float *scratch);
EXPORT void tl_linear_f32(float *y, const float *x, const float *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row, size_t y_row);
EXPORT void tl_linear_f16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row, size_t y_row);
EXPORT void tl_linear_bf16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                           ptrdiff_t w_row, size_t y_row);
EXPORT void tl_vecmat_f32(float *y, const float *x, const float *b, size_t k, size_t n, ptrdiff_t b_row);

#endif
