"""Layers that lengthen the spatial dims at both ends.

`padding` is one number for all ends, or (left, right, top, bottom, front, back): two numbers for each dim, the last dim
first. Negative numbers cut off.

Shapes:  1d (N, C, L), 2d (N, C, H, W), 3d (N, C, D, H, W), or without N -> the same with other sizes
"""

from __future__ import annotations

from collections.abc import Sequence

from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.nn.sizes import per_dim
from tallow.tensor import Tensor

Ends = int | Sequence[int]


class _Pad(Module):
    dims: int

    def __init__(self, padding: Ends) -> None:
        super().__init__()
        self.padding = per_dim(padding, 2 * self.dims)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Ends, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_Pad):
    value = 0.0

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)


class _ReflectionPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class _ReplicationPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class _CircularPad(_Pad):
    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise ArgumentError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input, got {input.ndim}D"
            )
        return F.pad(input, self.padding, "circular")


class ConstantPad1d(_ConstantPad):
    """`value` at both ends."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """`value` at both ends."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """`value` at both ends."""

    dims = 3


class ZeroPad1d(_ZeroPad):
    """Zeros at both ends."""

    dims = 1


class ZeroPad2d(_ZeroPad):
    """Zeros at both ends."""

    dims = 2


class ZeroPad3d(_ZeroPad):
    """Zeros at both ends."""

    dims = 3


class ReflectionPad1d(_ReflectionPad):
    """The elements next to each end, reflected; the end itself is not repeated."""

    dims = 1


class ReflectionPad2d(_ReflectionPad):
    """The elements next to each end, reflected; the end itself is not repeated."""

    dims = 2


class ReflectionPad3d(_ReflectionPad):
    """The elements next to each end, reflected; the end itself is not repeated."""

    dims = 3


class ReplicationPad1d(_ReplicationPad):
    """The element at each end, repeated."""

    dims = 1


class ReplicationPad2d(_ReplicationPad):
    """The element at each end, repeated."""

    dims = 2


class ReplicationPad3d(_ReplicationPad):
    """The element at each end, repeated."""

    dims = 3


class CircularPad1d(_CircularPad):
    """The elements of the other end."""

    dims = 1


class CircularPad2d(_CircularPad):
    """The elements of the other end."""

    dims = 2


class CircularPad3d(_CircularPad):
    """The elements of the other end."""

    dims = 3
