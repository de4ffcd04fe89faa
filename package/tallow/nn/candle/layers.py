"""candle's layer functions: they return modules of `tallow.nn` with variables from a VarBuilder.

The fields of candle's configuration structs are keyword arguments here. Variables that are new in a VarMap get candle's
initial values, which differ from PyTorch's.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, TypeVar

from tallow import dtypes
from tallow.core.creation import zeros
from tallow.nn.activation import PReLU
from tallow.nn.candle.init import Filler, Init
from tallow.nn.candle.var_builder import VarBuilder
from tallow.nn.channel_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm
from tallow.nn.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm, RMSNorm
from tallow.nn.parameter import Parameter
from tallow.nn.recurrent import GRU, LSTM

M = TypeVar("M", bound=Module)

KAIMING_NORMAL = Init.DEFAULT_KAIMING_NORMAL
KAIMING_UNIFORM = Init.DEFAULT_KAIMING_UNIFORM


def _with_variables(module: M, vb: VarBuilder, **inits: Filler | None) -> M:
    """Give a module on device "meta" its variables; None marks a variable that the module does not have."""
    for name, init in inits.items():
        if init is None:
            continue
        placeholder = getattr(module, name)
        is_parameter = isinstance(placeholder, Parameter)
        variable = vb.get_with_hints(tuple(placeholder.shape), name, init, trainable=is_parameter)
        if is_parameter and not isinstance(variable, Parameter):
            variable = Parameter(variable, requires_grad=False)
        setattr(module, name, variable)
    return module


def _around_zero(bound: float) -> Filler:
    return Init.Uniform(-bound, bound)


def linear(in_dim: int, out_dim: int, vb: VarBuilder) -> Linear:
    """Return a Linear with weight (out_dim, in_dim) and bias (out_dim)."""
    return linear_b(in_dim, out_dim, True, vb)


def linear_no_bias(in_dim: int, out_dim: int, vb: VarBuilder) -> Linear:
    """Return a Linear with weight (out_dim, in_dim) and no bias."""
    return linear_b(in_dim, out_dim, False, vb)


def linear_b(in_dim: int, out_dim: int, bias: bool, vb: VarBuilder) -> Linear:
    """Return a Linear with or without a bias."""
    module = Linear(in_dim, out_dim, bias, device="meta")
    return _with_variables(module, vb, weight=KAIMING_NORMAL, bias=_around_zero(in_dim**-0.5) if bias else None)


def embedding(in_size: int, out_size: int, vb: VarBuilder) -> Embedding:
    """Return an Embedding with weight (in_size, out_size)."""
    return _with_variables(Embedding(in_size, out_size, device="meta"), vb, weight=Init.Randn(0.0, 1.0))


def layer_norm(size: Any, eps: float, vb: VarBuilder) -> LayerNorm:
    """Return a LayerNorm over the last dimensions, with weight and bias of shape `size`."""
    return _with_variables(LayerNorm(size, eps, device="meta"), vb, weight=Init.ONE, bias=Init.ZERO)


def layer_norm_no_bias(size: Any, eps: float, vb: VarBuilder) -> LayerNorm:
    """Return a LayerNorm over the last dimensions, with a weight of shape `size` and no bias."""
    return _with_variables(LayerNorm(size, eps, bias=False, device="meta"), vb, weight=Init.ONE)


def rms_norm(size: Any, eps: float, vb: VarBuilder) -> RMSNorm:
    """Return an RMSNorm over the last dimensions, with a weight of shape `size`."""
    return _with_variables(RMSNorm(size, eps, device="meta"), vb, weight=Init.ONE)


def group_norm(num_groups: int, num_channels: int, eps: float, vb: VarBuilder) -> GroupNorm:
    """Return a GroupNorm with weight and bias (num_channels)."""
    module = GroupNorm(num_groups, num_channels, eps, device="meta")
    return _with_variables(module, vb, weight=Init.ONE, bias=Init.ZERO)


def batch_norm(
    num_features: int, eps: float, vb: VarBuilder, *, affine: bool = True, momentum: float = 0.1, dims: int = 2
) -> BatchNorm1d | BatchNorm2d | BatchNorm3d:
    """Return a BatchNorm with running_mean, running_var and, if `affine`, weight and bias; all (num_features).

    Args:
        dims: 1, 2 or 3, for BatchNorm1d, BatchNorm2d or BatchNorm3d.
    """
    kinds: dict[int, type[BatchNorm1d | BatchNorm2d | BatchNorm3d]] = {1: BatchNorm1d, 2: BatchNorm2d, 3: BatchNorm3d}
    module = kinds[dims](num_features, eps, momentum, affine, device="meta")
    module.num_batches_tracked = zeros((), dtype=dtypes.int64, device=vb.device)  # candle does not count them
    weight, bias = (Init.ONE, Init.ZERO) if affine else (None, None)
    return _with_variables(module, vb, running_mean=Init.ZERO, running_var=Init.ONE, weight=weight, bias=bias)


def conv1d(in_channels: int, out_channels: int, kernel_size: int, vb: VarBuilder, **options: Any) -> Conv1d:
    """Return a Conv1d with weight (out_channels, in_channels / groups, kernel_size) and bias (out_channels).

    Args:
        options: stride, padding, dilation and groups of nn.Conv1d.
    """
    module = Conv1d(in_channels, out_channels, kernel_size, device="meta", **options)
    return _with_variables(module, vb, weight=KAIMING_NORMAL, bias=_around_zero(in_channels**-0.5))


def conv1d_no_bias(in_channels: int, out_channels: int, kernel_size: int, vb: VarBuilder, **options: Any) -> Conv1d:
    """Return a Conv1d without bias; see `conv1d`."""
    module = Conv1d(in_channels, out_channels, kernel_size, bias=False, device="meta", **options)
    return _with_variables(module, vb, weight=KAIMING_NORMAL)


def conv2d(in_channels: int, out_channels: int, kernel_size: Any, vb: VarBuilder, **options: Any) -> Conv2d:
    """Return a Conv2d with weight (out_channels, in_channels / groups, kernel_size, kernel_size) and a bias.

    Args:
        options: stride, padding, dilation and groups of nn.Conv2d.
    """
    module = Conv2d(in_channels, out_channels, kernel_size, device="meta", **options)
    return _with_variables(module, vb, weight=KAIMING_NORMAL, bias=_around_zero(in_channels**-0.5))


def conv2d_no_bias(in_channels: int, out_channels: int, kernel_size: Any, vb: VarBuilder, **options: Any) -> Conv2d:
    """Return a Conv2d without bias; see `conv2d`."""
    module = Conv2d(in_channels, out_channels, kernel_size, bias=False, device="meta", **options)
    return _with_variables(module, vb, weight=KAIMING_NORMAL)


def conv_transpose1d(
    in_channels: int, out_channels: int, kernel_size: int, vb: VarBuilder, **options: Any
) -> ConvTranspose1d:
    """Return a ConvTranspose1d with weight (in_channels, out_channels / groups, kernel_size) and bias (out_channels).

    Args:
        options: stride, padding, output_padding, dilation and groups of nn.ConvTranspose1d.
    """
    module = ConvTranspose1d(in_channels, out_channels, kernel_size, device="meta", **options)
    init = _around_zero((out_channels * kernel_size) ** -0.5)
    return _with_variables(module, vb, weight=init, bias=init)


def conv_transpose2d(
    in_channels: int, out_channels: int, kernel_size: int, vb: VarBuilder, **options: Any
) -> ConvTranspose2d:
    """Return a ConvTranspose2d with weight (in_channels, out_channels / groups, kernel_size, kernel_size) and a bias.

    Args:
        options: stride, padding, output_padding, dilation and groups of nn.ConvTranspose2d.
    """
    module = ConvTranspose2d(in_channels, out_channels, kernel_size, device="meta", **options)
    init = _around_zero(1 / (sqrt(out_channels) * kernel_size))
    return _with_variables(module, vb, weight=init, bias=init)


def prelu(num_channels: int | None, vb: VarBuilder) -> PReLU:
    """Return a PReLU with weight (num_channels), or (1) for None."""
    module = PReLU(1 if num_channels is None else num_channels, device="meta")
    return _with_variables(module, vb, weight=Init.Const(0.25))


def lstm(in_dim: int, hidden_dim: int, vb: VarBuilder, *, bias: bool = True) -> LSTM:
    """Return an LSTM of one layer over sequences (batch, steps, in_dim).

    Variables: weight_ih_l0 (4 hidden_dim, in_dim), weight_hh_l0 (4 hidden_dim, hidden_dim), bias_ih_l0 and bias_hh_l0
    (4 hidden_dim).
    """
    return _recurrent(LSTM(in_dim, hidden_dim, bias=bias, batch_first=True, device="meta"), vb, bias)


def gru(in_dim: int, hidden_dim: int, vb: VarBuilder, *, bias: bool = True) -> GRU:
    """Return a GRU of one layer over sequences (batch, steps, in_dim).

    Variables: as for `lstm`, with 3 hidden_dim instead of 4 hidden_dim.
    """
    return _recurrent(GRU(in_dim, hidden_dim, bias=bias, batch_first=True, device="meta"), vb, bias)


def _recurrent(module: M, vb: VarBuilder, bias: bool) -> M:
    zero = Init.ZERO if bias else None
    return _with_variables(
        module, vb, weight_ih_l0=KAIMING_UNIFORM, weight_hh_l0=KAIMING_UNIFORM, bias_ih_l0=zero, bias_hh_l0=zero
    )
