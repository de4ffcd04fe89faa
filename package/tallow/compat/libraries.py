"""Compiled libraries of packages, whose ops are functions here: `torch.ops.load_library` looks for them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tallow
from tallow.autograd import enable_grad, grad
from tallow.compat.registry import LOADED, op_named
from tallow.core.tensor import Tensor
from tallow.vision import suppression


def load_library(path: str | Path) -> bool:
    """Register the ops of a library. Return whether there are functions for it."""
    name = f"{Path(path).parent.name}/{Path(path).name.partition('.')[0]}"
    for op, function in LIBRARIES.get(name, {}).items():
        op_named(op).functions[""] = function
        LOADED.add(op.partition("::")[0])
    return name in LIBRARIES


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices of boxes, by decreasing score, without those that overlap a box before them too much.

    Shapes:  dets (N, 4), with x and y of two corners; scores (N,) -> (M,)
    """
    boxes = dets.detach().to(tallow.promote_types(dets.dtype, tallow.float32)).numpy()
    kept = suppression.nms(boxes, scores.detach().numpy(), iou_threshold)
    return tallow.tensor(kept, dtype=tallow.int64, device=dets.device)


def roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, height: int, width: int, sampling_ratio: int, aligned: bool
) -> Tensor:
    """Return the features of regions, by the function in Python of torchvision itself."""
    module = importlib.import_module("torchvision.ops.roi_align")
    features: Tensor = module._roi_align(input, rois, spatial_scale, height, width, sampling_ratio, aligned)
    return features


def roi_align_backward(
    gradient: Tensor, rois: Tensor, spatial_scale: float, height: int, width: int, *rest: Any
) -> Tensor:
    """Return the gradient of `roi_align` for its input, which does not depend on the input's values."""
    *shape, sampling_ratio, aligned = rest
    with enable_grad():
        zeros = tallow.zeros(shape, dtype=gradient.dtype, device=gradient.device, requires_grad=True)
        features = roi_align(zeros, rois, spatial_scale, height, width, sampling_ratio, aligned)
        (found,) = grad(features, zeros, gradient)
    return zeros.detach() if found is None else found


def lfilter_core_loop(waveform: Tensor, coefficients: Tensor, padded: Tensor) -> None:
    """Fill the padded output of a recursive filter, by the function in Python of torchaudio itself."""
    filtering = importlib.import_module("torchaudio.functional.filtering")
    filtering._lfilter_core_generic_loop(waveform.clone(), coefficients, padded)  # which writes to its input too


def overdrive_core_loop(*tensors: Tensor) -> None:
    """Fill the output of an overdriven amplifier, by the function in Python of torchaudio itself."""
    importlib.import_module("torchaudio.functional.filtering")._overdrive_core_loop_generic(*tensors)


LIBRARIES: dict[str, dict[str, Callable[..., Any]]] = {
    "torchvision/_C": {
        "torchvision::nms": nms,
        "torchvision::roi_align": roi_align,
        "torchvision::_roi_align_backward": roi_align_backward,
        "torchvision::_cuda_version": lambda: -1,
    },
    "lib/_torchaudio": {
        "_torchaudio::cuda_version": lambda: None,
        "_torchaudio::is_align_available": lambda: False,
    },
    "lib/libtorchaudio": {
        "torchaudio::_lfilter_core_loop": lfilter_core_loop,
        "torchaudio::_overdrive_core_loop": overdrive_core_loop,
    },
}
