// Where the windows of an image with adjacent channels lie: an address for each position of the window and each point.

#ifndef TALLOW_PLACES_H
#define TALLOW_PLACES_H

#include "convolution/convolution.h"

// Fill places[tap · points + point] for `count` points from `first`, in the order of y; `outside` where the window is not in x.
// A pixel has so many bytes.
static __attribute__((noinline)) void fill_places(const char **places, size_t points, const char *x, const char *outside,
                                                  size_t pixel, const sizes *n, size_t first, size_t count) {
  const size_t row = n->width * pixel;
  for (size_t at = 0, run; at < count; at += run) { // the part of a row of y
    const size_t i = (first + at) / n->out_w, j = (first + at) % n->out_w, image = i / n->out_h;
    run = smaller(n->out_w - j, count - at);
    const char **place = places + at;
    for (size_t v = 0; v < n->kernel_h; v++) {
      const size_t h = i % n->out_h * n->stride_h + v * n->dilation_h - n->before_h; // wraps around above x
      const size_t from = (image * n->height + h) * row; // of x, if it is in it
      for (size_t u = 0; u < n->kernel_w; u++, place += points) {
        size_t column = j * n->stride_w + u * n->dilation_w - n->before_w;
        for (size_t p = 0; p < run; p++, column += n->stride_w)
          place[p] = h < n->height && column < n->width ? x + (from + column * pixel) : outside;
      }
    }
  }
}

#endif
