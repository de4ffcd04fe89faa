"""Resizing, sampling and shuffling images."""

from __future__ import annotations

import numpy as np

from cases import case, functional, integers, normal, uniform

x1, x2, x3 = normal(2, 3, 5), normal(2, 2, 4, 5), normal(1, 2, 3, 4, 5)

for mode in ("nearest", "nearest-exact"):
    case("resample", functional("interpolate", size=8, mode=mode), x1)
    case("resample", functional("interpolate", scale_factor=(2.0, 1.7), mode=mode), x2)
    case("resample", functional("interpolate", scale_factor=0.6, mode=mode), x2)
    case("resample", functional("interpolate", scale_factor=0.6, mode=mode, recompute_scale_factor=True), x2)
    case("resample", functional("interpolate", size=(2, 4, 7), mode=mode), x3)
case("resample", functional("interpolate", scale_factor=2), integers(1, 2, 3, 3).astype(np.uint8), grad=False)
for align in (None, False, True):
    case("resample", functional("interpolate", size=8, mode="linear", align_corners=align), x1)
    case("resample", functional("interpolate", size=(3, 9), mode="bilinear", align_corners=align), x2)
    case("resample", functional("interpolate", scale_factor=1.7, mode="bilinear", align_corners=align), x2)
    case("resample", functional("interpolate", size=(3, 9), mode="bicubic", align_corners=align), x2)
    case("resample", functional("interpolate", scale_factor=(0.5, 2.3), mode="bicubic", align_corners=align), x2)
    case("resample", functional("interpolate", size=(2, 4, 7), mode="trilinear", align_corners=align), x3)
case("resample", functional("interpolate", size=1, mode="linear", align_corners=True), x1)
case("resample", functional("interpolate", size=7, mode="linear"), x1[:, :, :1])
for mode in ("bilinear", "bicubic"):
    case("resample", functional("interpolate", size=(2, 3), mode=mode, antialias=True), x2)
    case("resample", functional("interpolate", size=(3, 8), mode=mode, antialias=True, align_corners=True), x2)
    case("resample", functional("interpolate", scale_factor=0.4, mode=mode, antialias=True), normal(1, 1, 11, 13))
# PyTorch's gradient for a dimension that keeps its size does not match its forward, which is the identity
case("resample", functional("interpolate", scale_factor=(1.1, 0.6), mode="bicubic", antialias=True), x2, grad=False)
case("resample", functional("interpolate", size=(5, 4), mode="lanczos", antialias=True), normal(1, 1, 11, 13))
case("adaptive_avg_pool", functional("interpolate", size=(2, 3), mode="area"), x2)
case("adaptive_avg_pool", functional("interpolate", scale_factor=1.5, mode="area"), x1)

points2, points3 = uniform(2, 3, 4, 2, low=-1.4, high=1.4), uniform(1, 2, 3, 2, 3, low=-1.4, high=1.4)
for padding_mode in ("zeros", "border", "reflection"):
    for align_corners in (False, True):
        options = {"padding_mode": padding_mode, "align_corners": align_corners}
        case("grid_sample", functional("grid_sample", **options), x2, points2)
        case("grid_sample", functional("grid_sample", mode="nearest", **options), x2, points2)
        case("grid_sample", functional("grid_sample", mode="bicubic", **options), x2, points2, atol=1e-5)
        case("grid_sample", functional("grid_sample", **options), x3, points3)
        case("grid_sample", functional("grid_sample", mode="nearest", **options), x3, points3)
        case("grid_sample", functional("grid_sample", **options), x2, 3 * points2)
case("affine_grid", functional("affine_grid", size=(2, 3, 4, 5), align_corners=False), normal(2, 2, 3))
case("affine_grid", functional("affine_grid", size=(2, 3, 4, 1), align_corners=False), normal(2, 2, 3))
case("affine_grid", functional("affine_grid", size=(1, 3, 2, 4, 5), align_corners=True), normal(1, 3, 4))

case("pixel_shuffle", functional("pixel_shuffle", upscale_factor=2), normal(2, 8, 3, 2))
case("pixel_shuffle", lambda m, x: m.pixel_shuffle(x, 3), normal(9, 2, 2))
case("pixel_shuffle", lambda m, x: m.pixel_shuffle(x, 2), normal(2, 3, 4, 1, 2))
case("pixel_unshuffle", functional("pixel_unshuffle", downscale_factor=2), normal(2, 2, 4, 6))
case("pixel_unshuffle", lambda m, x: m.pixel_unshuffle(x, 3), normal(2, 3, 6))
case("channel_shuffle", functional("channel_shuffle", groups=2), normal(2, 6, 3, 2))
case("channel_shuffle", lambda m, x: m.channel_shuffle(x, 3), integers(2, 6, 4), grad=False)

bytes2 = integers(2, 3, 7, 5, high=256).astype(np.uint8)
for mode in ("bilinear", "bicubic"):
    for options in (
        {"size": (4, 9)},
        {"size": (11, 3)},
        {"size": (13, 13), "align_corners": True},
        {"scale_factor": (1.7, 0.6)},
        {"scale_factor": 1.13},  # a dim that keeps its size is copied
        {"size": (3, 2), "antialias": True},
        {"size": (11, 3), "antialias": True},
        {"scale_factor": (0.4, 1.9), "antialias": True},
    ):
        case("resample", functional("interpolate", mode=mode, **options), bytes2, grad=False)
for mode in ("nearest", "nearest-exact"):
    for scale in (1.13, 2.09, (1.2, 0.4)):
        case("resample", functional("interpolate", mode=mode, scale_factor=scale), x2)
