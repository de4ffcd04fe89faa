"""ONNX operators on images: resizing, sampling, boxes, decoding.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.io.images import decoded
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.registry import Ints, State, ints, operator

MOST_CELLS = 1 << 20  # of all regions of MaxRoiPool
_GRID_MODES = {"linear": "bilinear", "cubic": "bicubic", "bilinear": "bilinear", "bicubic": "bicubic"}


@operator("GridSample", since=16)
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    """Sample the image at the points of `grid`."""
    return F.grid_sample(x, grid, _GRID_MODES.get(mode, mode), padding_mode, bool(align_corners))


@operator("AffineGrid", since=20)
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    """Return the points at which GridSample applies an affine map."""
    check_made("AffineGrid", ints(size), theta)
    return F.affine_grid(theta, ints(size), bool(align_corners))


@operator("NonMaxSuppression", since=10, whole=True)
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: State | None = None,
    score_threshold: State | None = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    """Choose boxes by score, without those that overlap a chosen one of their class.

    Shapes:  boxes (B, N, 4), scores (B, C, N) -> (chosen, 3): element of the batch, class, box
    """
    limit = 0 if max_output_boxes_per_class is None else int(max_output_boxes_per_class.item())
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.item())
    lowest = None if score_threshold is None else float(score_threshold.item())
    chosen: list[tuple[int, int, int]] = []
    values = scores.detach().to(tl.float32).numpy()
    for b, corners in enumerate(_corners(boxes.detach().to(tl.float32).numpy(), center_point_box)):
        for c in range(values.shape[1]):
            kept = _kept(corners, values[b, c], limit, overlap, lowest)
            chosen += [(b, c, i) for i in kept]
    return tl.tensor(np.array(chosen, np.int64).reshape(-1, 3))


def _corners(boxes: Any, center_point_box: int) -> Any:
    """Return (y1, x1, y2, x2) with y1 <= y2 and x1 <= x2; centre boxes are (x, y, width, height)."""
    if center_point_box:
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _kept(corners: Any, scores: Any, limit: int, overlap: float, lowest: float | None) -> list[int]:
    """Return the boxes of one class, the best first."""
    order = np.argsort(-scores, kind="stable")
    if lowest is not None:
        order = order[scores[order] > lowest]
    areas = np.prod(corners[:, 2:] - corners[:, :2], -1)
    kept: list[int] = []
    while order.size and len(kept) < limit:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        top = np.maximum(corners[best, :2], corners[order, :2])
        bottom = np.minimum(corners[best, 2:], corners[order, 2:])
        shared = np.prod(np.clip(bottom - top, 0, None), -1)
        union = areas[best] + areas[order] - shared
        order = order[~((union > 0) & (shared > overlap * union))]
    return kept


@operator("RoiAlign", since=10, whole=True, folds=False)
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str | None = None,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """Pool the regions `rois` (x1, y1, x2, y2) of images to one size, from bilinear samples.

    Shapes:  x (B, C, H, W), rois (R, 4), batch_indices (R) -> (R, C, output_height, output_width)
    Source:  He et al. 2017, arXiv:1703.06870
    """
    half = 0.5 if coordinate_transformation_mode in (None, "half_pixel") else 0.0
    regions = rois.detach().cpu().to(tl.float64).numpy() * spatial_scale - half
    check_made("RoiAlign", (len(rois), x.shape[1], output_height, output_width), x, rois)
    pooled = []
    for region, image in zip(regions, batch_indices.tolist(), strict=True):
        x1, y1, x2, y2 = region
        height, width = y2 - y1, x2 - x1
        if not half:
            height, width = max(height, 1.0), max(width, 1.0)
        rows = sampling_ratio or max(int(np.ceil(height / output_height)), 1)
        columns = sampling_ratio or max(int(np.ceil(width / output_width)), 1)
        shape = (x.shape[1], output_height, rows, output_width, columns)
        check_made("RoiAlign", shape, x)
        y = y1 + (np.arange(output_height * rows) + 0.5) * height / (output_height * rows)
        z = x1 + (np.arange(output_width * columns) + 0.5) * width / (output_width * columns)
        pooled.append(_pooled_samples(x[int(image)], y, z, mode, shape))
    return tl.stack(pooled) if pooled else x.new_zeros((0, x.shape[1], output_height, output_width))


def _pooled_samples(image: Tensor, y: Any, z: Any, mode: str, shape: tuple[int, ...]) -> Tensor:
    """Sample an image (C, H, W) on a grid, and pool the samples of each output.  Raises: ArgumentError for the mode"""
    if mode not in ("avg", "max"):
        raise ArgumentError(f"RoiAlign: mode={mode!r}", hint='use "avg" or "max"')
    (top, bottom, upper, lower), (left, right, near, far) = _pairs(y, image.shape[1]), _pairs(z, image.shape[2])
    terms = [
        image[:, tl.tensor(row)][:, :, tl.tensor(column)] * tl.tensor(a[:, None] * b[None], dtype=image.dtype)
        for row, a in ((top, upper), (bottom, lower))
        for column, b in ((left, near), (right, far))
    ]
    if mode == "max":  # of the weighted elements, as ONNX's definition has it
        return tl.stack(terms).amax(0).reshape(shape).amax((2, 4))
    return (terms[0] + terms[1] + terms[2] + terms[3]).reshape(shape).mean((2, 4))


def _pairs(position: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """Return the neighbours of positions and their weights, which are zero more than one element outside."""
    inside = (position >= -1) & (position <= size)
    position = np.clip(position, 0, size - 1)
    low = np.floor(position).astype(np.int64)
    part = position - low
    return low, np.minimum(low + 1, size - 1), (1 - part) * inside, part * inside


@operator("MaxRoiPool", since=1, whole=True, folds=False)
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    """Return the maxima of the parts of regions (image, x1, y1, x2, y2).

    Shapes:  x (B, C, H, W), rois (R, 5) -> (R, C, *pooled_shape)
    Source:  Girshick 2015, arXiv:1504.08083
    """
    cells_of_all = len(rois) * math.prod(pooled_shape)
    if min(pooled_shape) < 1 or cells_of_all > MOST_CELLS:
        raise ArgumentError(
            f"MaxRoiPool: pooled_shape={tuple(pooled_shape)} for {len(rois)} regions: none, or too many parts"
        )
    pooled = []
    for image, *corners in rois.tolist():
        x1, y1, x2, y2 = (int(np.floor(each * spatial_scale + 0.5)) for each in corners)
        rows = _parts(y1, max(y2 - y1 + 1, 1), pooled_shape[0], x.shape[2])
        columns = _parts(x1, max(x2 - x1 + 1, 1), pooled_shape[1], x.shape[3])
        region = x[int(image)]
        zero = region.new_zeros(region.shape[0])
        cells = [
            region[:, top:bottom, left:right].amax((1, 2)) if bottom > top and right > left else zero
            for top, bottom in rows
            for left, right in columns
        ]
        pooled.append(tl.stack(cells, -1).reshape(-1, *pooled_shape))
    return tl.stack(pooled)


def _parts(start: int, length: int, count: int, size: int) -> list[tuple[int, int]]:
    """Divide a range into parts that may share elements, within the image."""
    edges = [(start + length * i // count, start - (-length * (i + 1) // count)) for i in range(count)]
    return [(min(max(low, 0), size), min(max(high, 0), size)) for low, high in edges]


@operator("ImageDecoder", since=20, whole=True, folds=False)
def image_decoder(encoded_stream: Tensor, *, pixel_format: str = "RGB") -> Tensor:
    """Decode the bytes of a picture file, by Pillow.

    Shapes:  (bytes,) -> (H, W, 3), with "Grayscale" (H, W, 1)
    Raises:  ArgumentError for an unknown pixel format; ImageError and MissingPackageError as `tallow.io.images`
    """
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise ArgumentError(f"ImageDecoder: pixel_format={pixel_format!r}", hint="use RGB, BGR or Grayscale")
    stream = io.BytesIO(encoded_stream.cpu().numpy().tobytes())
    with decoded(stream, "the picture", "ImageDecoder", more=("JPEG2000", "PPM")) as picture:
        pixels = np.array(picture.convert("L" if pixel_format == "Grayscale" else "RGB"))
    if pixel_format == "Grayscale":
        pixels = pixels[..., None]
    return tl.tensor(np.ascontiguousarray(pixels[..., ::-1]) if pixel_format == "BGR" else pixels)
