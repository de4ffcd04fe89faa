"""Batch normalization over the batches of several processes.

Letters: N batch, C channels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tallow import dtypes
from tallow.autograd.function import Function
from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.distributed import (
    ProcessGroup,
    all_gather_into_tensor,
    all_reduce,
    get_world_size,
    is_initialized,
)
from tallow.distributed.groups import member
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.functions.normalization import move_statistic
from tallow.nn.channel_normalization import _BatchNorm
from tallow.nn.module import Module
from tallow.nn.parameter import UninitializedParameter
from tallow.ops.channel_normalization import check_channels, over_channels, per_channel


class SyncBatchNorm(_BatchNorm):
    """BatchNorm1d with mean and var over the batches of all processes of a group, in training.

    All processes of the group call their layers, and backward, in the same order. Their batches may differ in size, and
    some may be empty. The gradients of weight and bias are those of the process's own batch; DistributedDataParallel
    averages them. In evaluation, in a group of one process, and without a process group, the layer is a BatchNorm1d.

    Args:
        process_group: group of the batches; None means all processes. The others are as for torch.nn.SyncBatchNorm.

    Shapes:  x (N, C, ...) -> the same
    Raises:  ArgumentError if all batches together have fewer than two values per channel
    Source:  Ioffe & Szegedy 2015, arXiv:1502.03167; the statistics are combined as in Chan et al. 1979, "Updating
             Formulae and a Pairwise Algorithm for Computing Sample Variances", eq. 2.1
    """

    dims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every BatchNorm of a module by a SyncBatchNorm with its parameters and statistics; return the module.

        Raises:  ArgumentError for a lazy BatchNorm that has not seen an input
        """
        converted = module
        if isinstance(module, _BatchNorm):
            if isinstance(module.weight, UninitializedParameter) or not module.num_features:
                raise ArgumentError(
                    f"convert_sync_batchnorm: {type(module).__name__} has no number of channels yet",
                    hint="call the model once before converting it",
                )
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.train(module.training)
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted

    def _normalize(
        self, input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, training: bool, momentum: float
    ) -> Tensor:
        if not (training and self.training and is_initialized() and get_world_size(self.process_group) > 1):
            return super()._normalize(input, running_mean, running_var, training, momentum)
        array = input.array
        parameters = (self.weight, self.bias, running_mean, running_var)
        check_channels("SyncBatchNorm", array, *(None if p is None else p.array for p in parameters))
        statistics = _Statistics.of_group(dtypes.widen(array), member(self.process_group))
        values = statistics.values
        move_statistic(running_mean, wrap(statistics.mean), momentum)
        move_statistic(running_var, wrap(statistics.var), momentum, values / (values - 1))
        return _Normalize.apply(input, self.weight, self.bias, statistics, self.eps)


class _Statistics(NamedTuple):
    """Mean and variance of each channel over the batches of a group.

    Attributes:
        mean, var: (C); the variance is biased.
        values: number of values per channel.
    """

    mean: Array
    var: Array
    values: int
    group: ProcessGroup

    @classmethod
    def of_group(cls, x: Array, group: ProcessGroup) -> _Statistics:
        """Combine the mean and the sum of squared deviations of each rank, in float64.

        Sums of squares would lose the digits of a variance that is small compared with the mean.
        """
        xp = array_module(x)
        axes, channels = over_channels(x.ndim), x.shape[1]
        values = math.prod(x.shape) // max(channels, 1)
        local = xp.zeros(2 * channels + 1, "float64")
        if values:
            mean = x.mean(axis=axes)
            local[:channels] = mean
            local[channels:-1] = xp.square(x - per_channel(mean, x.ndim)).sum(axis=axes)
            local[-1] = values
        gathered = xp.empty((group.size(), local.size), "float64")
        all_gather_into_tensor(wrap(gathered), wrap(local), group)
        means, deviations, counts = gathered[:, :channels], gathered[:, channels:-1], gathered[:, -1:]
        count = int(counts.sum())
        if count < 2:
            raise ArgumentError(
                f"SyncBatchNorm: expected more than 1 value per channel in all {group.size()} processes together, "
                f"got {count}",
                hint="use larger batches, or eval()",
            )
        mean = (means * counts).sum(axis=0) / count
        var = (deviations + counts * xp.square(means - mean)).sum(axis=0) / count
        return cls(mean.astype(x.dtype), var.astype(x.dtype), count, group)


class _Normalize(Function):
    """(x - mean) / sqrt(var + eps) ⊙ weight + bias, with the statistics of a group.

    dx = r (h - mean(h) - n mean(h n)),  h = g ⊙ weight,  n = (x - mean) r,  r = 1 / sqrt(var + eps)

    The means in dx are over the values of all ranks.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None, statistics: _Statistics, eps: float
    ) -> Tensor:
        x = dtypes.widen(input.array)
        r = 1 / array_module(x).sqrt(statistics.var + x.dtype.type(eps))
        scale = r if weight is None else r * dtypes.widen(weight.array).astype(x.dtype, copy=False)
        y = (x - per_channel(statistics.mean, x.ndim)) * per_channel(scale, x.ndim)
        if bias is not None:
            y += per_channel(dtypes.widen(bias.array).astype(x.dtype, copy=False), x.ndim)
        ctx.save_for_backward(input)
        ctx.statistics, ctx.r, ctx.scale = statistics, r, scale
        return wrap(dtypes.cast(y, input.dtype))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        statistics = ctx.statistics
        x, g = dtypes.widen(ctx.saved_tensors[0].array), dtypes.widen(grad.array)
        axes, channels = over_channels(x.ndim), x.shape[1]
        normal = (x - per_channel(statistics.mean, x.ndim)) * per_channel(ctx.r, x.ndim)
        sums = array_module(x).concatenate([(g * normal).sum(axis=axes), g.sum(axis=axes)])
        d_weight, d_bias = wrap(sums[:channels]), wrap(sums[channels:])
        if not ctx.needs_input_grad[0]:
            return None, d_weight, d_bias, None, None
        total = wrap(sums.copy())
        all_reduce(total, group=statistics.group)
        means = total.array / statistics.values
        dx = g - per_channel(means[channels:], x.ndim) - normal * per_channel(means[:channels], x.ndim)
        dx *= per_channel(ctx.scale, x.ndim)
        return wrap(dx), d_weight, d_bias, None, None
