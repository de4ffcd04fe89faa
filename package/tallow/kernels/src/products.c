// The products with quantised blocks, by format (kernels.h).
//   tl_product       that of this library; null for a format of floats
//   tl_use_products  let the other kernels of this library call the products of another one, of whose instructions this
//                    processor has more; both libraries round rows of x to the same layout
//   product_of       the product to call
#include "kernels.h"
#include "quantized.h"

EXPORT products tl_product;
EXPORT void tl_use_products(products *others);

static products *chosen; // null for those of this library

linear_quantized *tl_product(int32_t format) {
#if INTERLEAVES
  switch (format) {
  case INTERLEAVED + Q8_0:
    return tl_interleaved_q8_0;
  case INTERLEAVED + Q4_0:
    return tl_interleaved_q4_0;
  case INTERLEAVED + Q5_0:
    return tl_interleaved_q5_0;
  case INTERLEAVED + Q4_K:
    return tl_interleaved_q4_k;
  case INTERLEAVED + Q5_K:
    return tl_interleaved_q5_k;
  case INTERLEAVED + Q6_K:
    return tl_interleaved_q6_k;
  case INTERLEAVED + Q4_1:
    return tl_interleaved_q4_1;
  case INTERLEAVED + Q5_1:
    return tl_interleaved_q5_1;
  case INTERLEAVED + Q2_K:
    return tl_interleaved_q2_k;
  case INTERLEAVED + Q3_K:
    return tl_interleaved_q3_k;
  }
#endif
  switch (format) {
  case Q8_0:
    return tl_linear_q8_0;
  case Q4_0:
    return tl_linear_q4_0;
  case Q5_0:
    return tl_linear_q5_0;
  case Q4_K:
    return tl_linear_q4_k;
  case Q5_K:
    return tl_linear_q5_k;
  case Q6_K:
    return tl_linear_q6_k;
  case Q4_1:
    return tl_linear_q4_1;
  case Q5_1:
    return tl_linear_q5_1;
  case Q2_K:
    return tl_linear_q2_k;
  case Q3_K:
    return tl_linear_q3_k;
  default:
    return 0;
  }
}

void tl_use_products(products *others) { chosen = others; }

linear_quantized *product_of(int32_t format) { return chosen ? chosen(format) : tl_product(format); }
