// Products of a sparse matrix of float in compressed rows; the contract is in csr.h.
#define REAL float
#define NAME(function) tl_csr_##function##_f32
#include "product/csr.h"
