// Kernels that other kernels call; the contract of each is at the top of its own file.

#ifndef TALLOW_KERNELS_H
#define TALLOW_KERNELS_H

#include "runtime/vec.h"

typedef struct {
  const void *weight; // a matrix (out, in), or the scale of a norm (out,)
  const float *bias;  // (out,)
  int32_t format;     // of a matrix
} affine;

// The formats of matrices: of floats, and quantised blocks of GGUF.
enum { FLOAT32, FLOAT16, BFLOAT16, Q8_0, Q4_0, Q5_0, Q4_K, Q5_K, Q6_K, Q4_1, Q5_1, Q2_K, Q3_K };

// Added to a format of blocks whose rows are interleaved by COLUMNS (interleaved.h); a product of some columns begins at a
// multiple of COLUMNS.
enum { INTERLEAVED = 16, COLUMNS = 16 };

EXPORT void tl_softmax_f32(float *y, const float *x, size_t rows, size_t n);
EXPORT void tl_rms_norm_f32(float *y, const float *x, const float *w, size_t rows, size_t n, float eps);
EXPORT void tl_layer_norm_f32(float *y, const float *x, const float *w, const float *b, size_t rows, size_t n, float eps);
EXPORT void tl_gelu_f32(float *y, const float *x, size_t n);
EXPORT void tl_silu_mul_f32(float *y, const float *a, const float *b, size_t n);
EXPORT void tl_rotary_f32(float *y, const float *x, const float *cos, const float *sin, size_t lead, size_t t, size_t k,
                          int interleaved);
EXPORT void tl_attention_decode_f32(float *y, const float *q, const float *k, const float *v, size_t batch, size_t heads,
                                    size_t kv_heads, size_t s, size_t width, const ptrdiff_t *k_stride,
                                    const ptrdiff_t *v_stride, float *scratch, float scale);
EXPORT void tl_short_convolution_f32(float *y, float *past, const float *x, const float *w, const float *bias, size_t first,
                                     size_t last, size_t batch, size_t t, size_t channels, size_t taps);
EXPORT void tl_delta_rule_f32(float *y, const float *q, const float *k, const float *v, const float *decay, const float *beta,
                              float *state, size_t heads, size_t t, size_t k_width, size_t v_width);
EXPORT void tl_linear_f32(float *y, const float *x, const float *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row, size_t y_row);
EXPORT size_t tl_linear_panels_scratch(size_t m, size_t k, int format);
EXPORT void tl_linear_panels(float *y, const float *x, const void *w, const float *bias, size_t m, size_t k, size_t n,
                             ptrdiff_t w_row, size_t y_row, int format, float *scratch);
EXPORT void tl_widen_f16(float *y, const uint16_t *x, size_t n);
EXPORT void tl_widen_bf16(float *y, const uint16_t *x, size_t n);
EXPORT void tl_narrow_f32(uint16_t *y, const float *x, size_t n, int32_t format);
EXPORT void tl_linear_f16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                          ptrdiff_t w_row, size_t y_row);
EXPORT void tl_linear_bf16(float *y, const float *x, const uint16_t *w, const float *bias, size_t m, size_t k, size_t n,
                           ptrdiff_t w_row, size_t y_row);
EXPORT void tl_round_int8_rows(int8_t *codes, float *scales, const float *x, size_t rows, size_t n);
EXPORT void tl_widen_int8_rows(float *y, const int8_t *codes, const float *scales, size_t rows, size_t n);
EXPORT void tl_round_rows_f32(unsigned char *rounded, const float *x, size_t m, size_t k);
EXPORT size_t tl_rounded_bytes(size_t k);

// Products with blocks; the contract is in quantized_linear.h.
typedef void linear_quantized(float *y, const unsigned char *x, const unsigned char *w, const float *bias, size_t m, size_t k,
                              size_t n, size_t y_row);
EXPORT linear_quantized tl_linear_q8_0, tl_linear_q4_0, tl_linear_q4_1, tl_linear_q5_0, tl_linear_q5_1;
EXPORT linear_quantized tl_linear_q2_k, tl_linear_q3_k, tl_linear_q4_k, tl_linear_q5_k, tl_linear_q6_k;
EXPORT linear_quantized tl_interleaved_q8_0, tl_interleaved_q4_0, tl_interleaved_q4_1, tl_interleaved_q5_0;
EXPORT linear_quantized tl_interleaved_q5_1, tl_interleaved_q2_k, tl_interleaved_q3_k, tl_interleaved_q4_k;
EXPORT linear_quantized tl_interleaved_q5_k, tl_interleaved_q6_k; // for INTERLEAVED
typedef linear_quantized *products(int32_t format);
products product_of; // in products.c

// y (m, n) = x (m, k) @ wᵀ + bias, w (n, k) of floats, all contiguous but the rows of y, which are y_row apart; bias may be
// null.
void linear_of_floats(float *y, const float *x, const void *w, const float *bias, int32_t format, size_t m, size_t k,
                      size_t n, size_t y_row);
// The same for rows of x that are rounded already, and blocks; all contiguous.
void linear_of_blocks(float *y, const void *rounded, const void *w, const float *bias, int32_t format, size_t m, size_t k,
                      size_t n);

EXPORT void tl_vecmat_f32(float *y, const float *x, const float *b, size_t k, size_t n, ptrdiff_t b_row);

#endif
