// Products of a sparse matrix of double in compressed rows; the contract is in csr.h.
#define REAL double
#define NAME(function) tl_csr_##function##_f64
#include "product/csr.h"
