"""Layers that pad the spatial dimensions.

`padding` is one number for all sides, or (left, right, top, bottom, front, back): two numbers per dimension, the last
dimension first. Negative numbers crop.

Shapes:  1d (N, C, L), 2d (N, C, H, W), 3d (N, C, D, H, W), or without N -> the same with padded sizes
"""

from __future__ import annotations

from collections.abc import Sequence

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.nn.sizes import per_dim

Ends = int | Sequence[int]


class _Pad(Module):
    """Base of padding layers: the padding of `dims` spatial dimensions."""

    dims: int

    def __init__(self, padding: Ends) -> None:
        super().__init__()
        self.padding = per_dim(padding, 2 * self.dims)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding: Ends, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Ends) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class _ReplicationPadNd(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class _CircularPadNd(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise ArgumentError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input, got {input.ndim}D"
            )
        return F.pad(input, self.padding, "circular")


class ConstantPad1d(_ConstantPadNd):
    """Pad with `value`."""

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad with `value`."""

    dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad with `value`."""

    dims = 3


class ZeroPad1d(_ZeroPad):
    """Pad with zeros."""

    dims = 1


class ZeroPad2d(_ZeroPad):
    """Pad with zeros."""

    dims = 2


class ZeroPad3d(_ZeroPad):
    """Pad with zeros."""

    dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pad by reflection, without repeating the edge."""

    dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad by reflection, without repeating the edge."""

    dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad by reflection, without repeating the edge."""

    dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pad by repeating the edge."""

    dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad by repeating the edge."""

    dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad by repeating the edge."""

    dims = 3


class CircularPad1d(_CircularPadNd):
    """Pad circularly, with the elements of the opposite side."""

    dims = 1


class CircularPad2d(_CircularPadNd):
    """Pad circularly, with the elements of the opposite side."""

    dims = 2


class CircularPad3d(_CircularPadNd):
    """Pad circularly, with the elements of the opposite side."""

    dims = 3
