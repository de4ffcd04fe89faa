// The sizes of a convolution, as passed by the caller.

#ifndef TALLOW_CONVOLUTION_H
#define TALLOW_CONVOLUTION_H

#include "convolution/windows.h"

typedef struct {
  size_t samples, groups, channels, outputs; // the latter two per group
  size_t height, width, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, before_h, before_w, out_h, out_w;
} sizes;

#endif
