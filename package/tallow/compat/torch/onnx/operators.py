"""torch.onnx.operators: functions that an export keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.compat.torch import _shape_as_tensor as shape_as_tensor
from tallow.core.tensor import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def reshape_from_tensor_shape(x: Tensor, shape: Tensor | Sequence[int]) -> Any:
    """Reshape a tensor to the sizes in another one."""
    return x.reshape([int(size) for size in shape])
