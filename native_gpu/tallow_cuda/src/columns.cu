// Gather windows of images into the columns of a matrix, so that a convolution is a matrix product; and sum them back.
//
//   images (samples, channels, D, H, W) contiguous; an image of fewer dims has leading ones of size 1
//   element (c, kd, kh, kw; n, od, oh, ow) of the columns is at
//     (((c · KD + kd) · KH + kh) · KW + kw) · row + n · sample + (od · OH + oh) · OW + ow
//
// X: the element type read, Y: the element type written; KD, KH, KW, SD, ... DW: kernel, stride and dilation

#include "element.cuh"

constexpr int kernel[3] = {KD, KH, KW}, stride[3] = {SD, SH, SW}, dilation[3] = {DD, DH, DW};
constexpr int volume = KD * KH * KW;

struct Triple {
    int at[3];  // depth, height, width
};

__device__ __forceinline__ Triple places_of(int number, int height, int width) {
    return {{number / width / height, number / width % height, number % width}};
}

// One block row per row of the columns, one thread per element: adjacent threads write adjacent elements.
extern "C" __global__ void columns_of_images(const X* images, Y* columns, int samples, int channels, int depth,
                                             int height, int width, int out_depth, int out_height, int out_width,
                                             int before_d, int before_h, int before_w, index_t row, index_t sample) {
    const int size[3] = {depth, height, width}, before[3] = {before_d, before_h, before_w};
    int places = out_depth * out_height * out_width;
    index_t at = blockIdx.x * (index_t)blockDim.x + threadIdx.x;
    if (at >= (index_t)samples * places) return;
    int n = (int)(at / places), place = (int)(at % places);
    Triple o = places_of(place, out_height, out_width);
    for (int r = blockIdx.y; r < channels * volume; r += gridDim.y) {
        Triple k = places_of(r % volume, KH, KW);
        index_t from = (index_t)n * channels + r / volume;
        bool inside = true;
#pragma unroll
        for (int d = 0; d < 3; d++) {
            int i = o.at[d] * stride[d] + k.at[d] * dilation[d] - before[d];
            inside = inside && i >= 0 && i < size[d];
            from = from * size[d] + i;
        }
        columns[r * row + n * sample + place] = from_float<Y>(inside ? to_float(images[from]) : 0.0f);
    }
}

// Return the output index whose window has pixel `i` at position `k`, along one dim; -1 if there is none.
__device__ __forceinline__ int window_of(int i, int k, int d, int before, int out) {
    int o = i + before - k * dilation[d];
    return o < 0 || o % stride[d] || o / stride[d] >= out ? -1 : o / stride[d];
}

// Sum all elements of the columns that come from one element of the images. Each thread gathers one sum, so its order
// is fixed and there are no atomic additions.
extern "C" __global__ void images_of_columns(const X* columns, Y* images, int samples, int channels, int depth,
                                             int height, int width, int out_depth, int out_height, int out_width,
                                             int before_d, int before_h, int before_w, index_t row, index_t sample) {
    int pixels = depth * height * width;
    index_t at = blockIdx.x * (index_t)blockDim.x + threadIdx.x;
    if (at >= (index_t)samples * channels * pixels) return;
    Triple i = places_of((int)(at % pixels), height, width);
    int c = (int)(at / pixels % channels), n = (int)(at / pixels / channels);
    const X* mine = columns + (index_t)c * volume * row + n * sample;
    float sum = 0.0f;
    for (int kd = 0; kd < KD; kd++) {
        int od = window_of(i.at[0], kd, 0, before_d, out_depth);
        if (od < 0) continue;
        for (int kh = 0; kh < KH; kh++) {
            int oh = window_of(i.at[1], kh, 1, before_h, out_height);
            if (oh < 0) continue;
            for (int kw = 0; kw < KW; kw++) {
                int ow = window_of(i.at[2], kw, 2, before_w, out_width);
                if (ow < 0) continue;
                sum += to_float(mine[((kd * KH + kh) * KW + kw) * row + (od * out_height + oh) * out_width + ow]);
            }
        }
    }
    images[at] = from_float<Y>(sum);
}
