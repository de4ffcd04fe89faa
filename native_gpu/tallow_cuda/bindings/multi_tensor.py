"""total_norm, scale_all: many arrays in a launch; see src/norms_of_many.cu."""

from __future__ import annotations

from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.kernels import kernel
from tallow_cuda.launching import FLOAT32, is_float, launch
from tallow_cuda.lists import FIRST, count_blocks, launch_lists, uniform
from tallow_cuda.sources import element, load


def float_list(arrays: list[Array], *_: Any) -> bool:
    """Contiguous arrays of float32, float16 or bfloat16."""
    return is_float(arrays[0]) and uniform(arrays)


@kernel("total_norm", "cuda", accepts=float_list)
def total_norm(arrays: list[Array]) -> Array:
    """Compute tallow.ops.multi_tensor.total_norm in two launches."""
    xp, blocks = array_module(arrays[0]), count_blocks(arrays)
    partial, y = xp.empty(blocks, FLOAT32), xp.empty((), FLOAT32)
    x = element(arrays[0])
    launch_lists(load("norms_of_many.cu", "square_sums", X=x), [arrays], partial, FIRST)
    launch(load("norms_of_many.cu", "root_of_sum", X=x), (1,), (1024,), partial, blocks, y)
    return y


@kernel("scale_all", "cuda", accepts=float_list)
def scale_all(arrays: list[Array], factor: float | Array, found: Array | None) -> None:
    """Compute tallow.ops.multi_tensor.scale_all, 64 arrays per launch."""
    kernel = load("norms_of_many.cu", "scale", X=element(arrays[0]))
    array, number = (None, factor) if isinstance(factor, float) else (widen(factor).astype(FLOAT32, copy=False), 1.0)
    launch_lists(kernel, [arrays], array, number, found)
