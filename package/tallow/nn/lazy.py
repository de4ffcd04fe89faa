"""Lazy modules: layers that infer the size of their input from the first input, as in PyTorch.

Before the first input, their parameters are `UninitializedParameter`s. The first input allocates and initializes them,
and the layer changes its class to the ordinary one: a `LazyLinear` becomes a `Linear`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn.channel_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _BatchNorm,
    _NormBase,
)
from tallow.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Sizes,
    _ConvNd,
)
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import UninitializedBuffer, UninitializedParameter

UNINITIALIZED = (UninitializedParameter, UninitializedBuffer)


class _Lazy(Module):
    """Mixin of lazy layers. It precedes the ordinary class in the bases.

    Attributes:
        cls_to_become: the class of a layer that is complete; None if it keeps its own
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(_initialize, with_kwargs=True)
        self._load_hook = self._register_load_state_dict_pre_hook(_allocate, with_module=True)

    def has_uninitialized_params(self) -> bool:
        """Return whether any parameter or buffer has no shape yet."""
        return any(isinstance(t, UNINITIALIZED) for _, t in self._own_state())

    def initialize_parameters(self, input: Tensor) -> None:
        """Allocate and initialize the parameters for an input of this shape; loaded parameters keep their values."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize_parameters")

    def reset_parameters(self) -> None:
        if not any(isinstance(t, UNINITIALIZED) or t.numel() == 0 for _, t in self._own_state()):
            super().reset_parameters()  # type: ignore[misc]

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars or isinstance(tensor, UNINITIALIZED) else tensor.detach()


def _initialize(module: _Lazy, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    module.initialize_parameters(*args, **kwargs)
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become  # type: ignore[assignment]


def _allocate(module: _Lazy, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
    """Allocate the parameters that a state dict has values for, before it is loaded."""
    for name, tensor in module._own_state():
        value = state_dict.get(prefix + name)
        if isinstance(tensor, UNINITIALIZED) and isinstance(value, Tensor) and not isinstance(value, UNINITIALIZED):
            tensor.materialize(value.shape)


class LazyLinear(_Lazy, Linear):
    """Linear with in_features inferred from the first input.

    Args:    as torch.nn.LazyLinear
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.bias = UninitializedParameter(device=device, dtype=dtype) if bias else None

    def initialize_parameters(self, input: Tensor) -> None:
        self.in_features = input.shape[-1]
        if self.has_uninitialized_params():
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()


class _LazyConv(_Lazy, _ConvNd):
    transposed = False

    def _set_uninitialized(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        if out_channels % self.groups:
            raise ArgumentError(f"{type(self).__name__}: groups={self.groups} must divide {out_channels} channels")
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.bias = UninitializedParameter(device=device, dtype=dtype) if bias else None

    def initialize_parameters(self, input: Tensor) -> None:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise ArgumentError(
                f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input, got {input.ndim}D"
            )
        self.in_channels = input.shape[-self.dims - 1]
        if self.in_channels % self.groups:
            raise ArgumentError(f"{type(self).__name__}: groups={self.groups} must divide {self.in_channels} channels")
        if self.has_uninitialized_params():
            outer, inner = self.out_channels, self.in_channels
            if self.transposed:
                outer, inner = inner, outer
            self.weight.materialize((outer, inner // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConvolution(_LazyConv):
    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._set_uninitialized(out_channels, bias, device, dtype)


class _LazyTransposedConvolution(_LazyConv):
    transposed = True

    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._set_uninitialized(out_channels, bias, device, dtype)


class _LazyNorm(_Lazy, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        options = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**options)
            self.bias = UninitializedParameter(**options) if bias else None
        if track_running_stats:
            self.running_mean, self.running_var = UninitializedBuffer(**options), UninitializedBuffer(**options)

    def initialize_parameters(self, input: Tensor) -> None:
        self._check_dims(input)
        is_batch = isinstance(self, _BatchNorm) or input.ndim == self.dims[-1]
        self.num_features = input.shape[1 if is_batch else 0]
        if self.has_uninitialized_params():
            for _, tensor in self._own_state():
                if isinstance(tensor, UNINITIALIZED):
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


class LazyConv1d(_LazyConvolution, Conv1d):
    """Conv1d with in_channels inferred from the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvolution, Conv2d):
    """Conv2d with in_channels inferred from the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvolution, Conv3d):
    """Conv3d with in_channels inferred from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposedConvolution, ConvTranspose1d):
    """ConvTranspose1d with in_channels inferred from the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConvolution, ConvTranspose2d):
    """ConvTranspose2d with in_channels inferred from the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConvolution, ConvTranspose3d):
    """ConvTranspose3d with in_channels inferred from the first input."""

    cls_to_become = ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d with num_features inferred from the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d with num_features inferred from the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d with num_features inferred from the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d with num_features inferred from the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d with num_features inferred from the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d with num_features inferred from the first input."""

    cls_to_become = InstanceNorm3d
