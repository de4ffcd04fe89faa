// The products with quantised blocks, by format (kernels.h).
//   tl_product       that of this library; null for a format of floats
//   tl_use_products  let the other kernels of this library call the products of another one, of whose instructions this
//                    processor has more; both libraries round rows of x to the same layout
//   product_of       the product to call
#include "runtime/kernels.h"
#include "quantized/quantized.h"

EXPORT products tl_product;
EXPORT void tl_use_products(products *others);

static products *chosen; // null for those of this library

#define FORMATS(OF)                                                                                                      \
  OF(Q8_0, q8_0) OF(Q4_0, q4_0) OF(Q5_0, q5_0) OF(Q4_K, q4_k) OF(Q5_K, q5_k) OF(Q6_K, q6_k) OF(Q4_1, q4_1)               \
  OF(Q5_1, q5_1) OF(Q2_K, q2_k) OF(Q3_K, q3_k)

linear_quantized *tl_product(int32_t format) {
  switch (format) {
#define PRODUCT(FORMAT, NAME)                                                                                            \
  case FORMAT:                                                                                                           \
    return tl_linear_##NAME;
    FORMATS(PRODUCT)
#if INTERLEAVES
#define INTERLEAVED_PRODUCT(FORMAT, NAME)                                                                                \
  case INTERLEAVED + FORMAT:                                                                                             \
    return tl_interleaved_##NAME;
    FORMATS(INTERLEAVED_PRODUCT)
#endif
  default:
    return 0;
  }
}

void tl_use_products(products *others) { chosen = others; }

linear_quantized *product_of(int32_t format) { return chosen ? chosen(format) : tl_product(format); }

void linear_of_blocks(float *y, const void *rounded, const void *w, const float *bias, int32_t format, size_t m, size_t k,
                      size_t n) {
  product_of(format)(y, rounded, w, bias, m, k, n, n);
}
