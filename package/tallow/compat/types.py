"""torch.types and torch.nn.common_types: type aliases for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.devices import device
from tallow.dtypes import dtype

__all__ = [
    "Device",
    "Number",
    "Tensor",
    "_TensorOrTensors",
    "_bool",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_size",
    "_size_1_t",
    "_size_2_t",
    "_size_3_t",
    "_size_any_t",
]

Device: TypeAlias = device | str | int | None
Number: TypeAlias = int | float | bool
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_device: Any = device
_dtype: Any = dtype
_bool, _float, _int = bool, float, int
_size_any_t: TypeAlias = int | tuple[int, ...]
_size_1_t: TypeAlias = int | tuple[int]
_size_2_t: TypeAlias = int | tuple[int, int]
_size_3_t: TypeAlias = int | tuple[int, int, int]
