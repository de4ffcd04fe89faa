"""Convolutions and transposed convolutions.

Letters: N batch, C input channels, O output channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.nn.sizes import per_dim

Sizes = int | Sequence[int]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of convolutions and transposed convolutions: their parameters and options."""

    dims: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        output_padding: Sizes,
        groups: int,
        padding_mode: str,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ArgumentError(
                f"{name}: groups={groups} must be positive and divide {in_channels} input and {out_channels} output "
                "channels"
            )
        if padding_mode not in PADDING_MODES:
            raise ArgumentError(f"{name}: padding_mode={padding_mode!r}", hint=f"use one of {PADDING_MODES}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_dim(kernel_size, self.dims)
        self.stride = per_dim(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else per_dim(padding, self.dims)
        self.dilation = per_dim(dilation, self.dims)
        self.output_padding = per_dim(output_padding, self.dims)
        self.groups = groups
        self.padding_mode = padding_mode

    def _make_parameters(self, inner: int, outer: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = empty_parameter(outer, inner, *self.kernel_size, device=device, dtype=dtype)
        self.bias = empty_parameter(self.out_channels, device=device, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-1/√k, 1/√k), where k is the fan-in, as PyTorch does."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = init.fan_in_and_fan_out(self.weight)[0]
            bound = fan_in**-0.5 if fan_in else 0.0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
            f"padding={self.padding}" if self.padding != (0,) * self.dims else "",
            f"dilation={self.dilation}" if self.dilation != (1,) * self.dims else "",
            f"output_padding={self.output_padding}" if self.output_padding != (0,) * self.dims else "",
            f"groups={self.groups}" if self.groups != 1 else "",
            "bias=False" if self.bias is None else "",
            f"padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "",
        ]
        return ", ".join(filter(None, parts))


class _Convolution(_ConvNd):
    transposed = False
    _convolve: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, padding_mode)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ArgumentError(f"{type(self).__name__}: padding={padding!r}", hint="use sizes, 'same' or 'valid'")
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ArgumentError(
                f"{type(self).__name__}: padding='same' is not supported for strided convolutions, got {self.stride}"
            )
        self._make_parameters(in_channels // groups, out_channels, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with the given weight and bias. Named as in PyTorch, because user subclasses override it."""
        if self.padding_mode == "zeros":
            return self._convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._pad_widths(), self.padding_mode)
        return self._convolve(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def _pad_widths(self) -> list[int]:
        """Return the padding in the order of F.pad: both sides of each dimension, the last dimension first."""
        if not isinstance(self.padding, str):
            return [end for size in reversed(self.padding) for end in (size, size)]
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        spans = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [end for span in reversed(spans) for end in (span // 2, span - span // 2)]


class Conv1d(_Convolution):
    """y[n, o] = bias[o] + Σ_c weight[o, c] ⋆ x[n, c], ⋆ the cross-correlation.

    Args:    as torch.nn.Conv1d
    Shapes:  x (N, C, L) or (C, L) -> (N, O, L') or (O, L');  weight (O, C / groups, kernel_size);  bias (O)
    Dtypes:  any float, the same for x and the parameters
    """

    dims = 1
    _convolve = staticmethod(F.conv1d)


class Conv2d(_Convolution):
    """y[n, o] = bias[o] + Σ_c weight[o, c] ⋆ x[n, c], ⋆ the cross-correlation.

    Args:    as torch.nn.Conv2d; sizes are one number, or one each for height and width
    Shapes:  x (N, C, H, W) or (C, H, W) -> (N, O, H', W') or (O, H', W');  weight (O, C / groups, *kernel_size);
             bias (O)
    Dtypes:  any float, the same for x and the parameters
    """

    dims = 2
    _convolve = staticmethod(F.conv2d)


class Conv3d(_Convolution):
    """y[n, o] = bias[o] + Σ_c weight[o, c] ⋆ x[n, c], ⋆ the cross-correlation.

    Args:    as torch.nn.Conv3d; sizes are one number, or one each for depth, height and width
    Shapes:  x (N, C, D, H, W) or (C, D, H, W) -> the same with O for C;  weight (O, C / groups, *kernel_size);
             bias (O)
    Dtypes:  any float, the same for x and the parameters
    """

    dims = 3
    _convolve = staticmethod(F.conv3d)


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(f"{type(self).__name__}: padding_mode={padding_mode!r}", hint="use 'zeros'")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, padding_mode
        )
        self._make_parameters(out_channels // groups, in_channels, bias, device, dtype)

    def _convolve(self, convolve: Any, input: Tensor, output_size: Sequence[int] | None) -> Tensor:
        output_padding = self.output_padding if output_size is None else self._padding_for(input, output_size)
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )

    def _padding_for(self, input: Tensor, output_size: Sequence[int]) -> list[int]:
        """Return the output padding that gives this output size: a strided convolution maps several sizes to one."""
        name, target, dims = type(self).__name__, tuple(output_size), self.dims
        if len(target) == input.ndim:
            target = target[-dims:]
        if len(target) != dims:
            raise ArgumentError(f"{name}: output_size must have {dims} or {input.ndim} elements, got {output_size}")
        sizes = zip(input.shape[-dims:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        smallest = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in sizes]
        largest = [n + s - 1 for n, s in zip(smallest, self.stride, strict=True)]
        if not all(a <= n <= b for a, n, b in zip(smallest, target, largest, strict=True)):
            raise ArgumentError(
                f"{name}: output size {target} is impossible for input {tuple(input.shape)}; "
                f"sizes from {smallest} to {largest} are possible"
            )
        return [n - a for n, a in zip(target, smallest, strict=True)]


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of Conv1d by its input, as a layer: each element spreads a kernel.

    Args:    as torch.nn.ConvTranspose1d
    Shapes:  x (N, C, L) or (C, L) -> (N, O, L') or (O, L');  weight (C, O / groups, kernel_size);  bias (O)
    """

    dims = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolve(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of Conv2d by its input, as a layer: each element spreads a kernel.

    Args:    as torch.nn.ConvTranspose2d
    Shapes:  x (N, C, H, W) or (C, H, W) -> the same with O for C;  weight (C, O / groups, *kernel_size);  bias (O)
    """

    dims = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolve(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of Conv3d by its input, as a layer: each element spreads a kernel.

    Args:    as torch.nn.ConvTranspose3d
    Shapes:  x (N, C, D, H, W) or (C, D, H, W) -> the same with O for C;  weight (C, O / groups, *kernel_size);
             bias (O)
    """

    dims = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._convolve(F.conv_transpose3d, input, output_size)
