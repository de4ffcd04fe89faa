"""Layers that normalize channels: batch, instance, group and local response normalization.

Letters: N batch, C channels.
"""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.core.creation import ones, zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, warn
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter, empty_parameter


class _NormBase(Module):
    """Base of batch and instance normalization: weight and bias per channel, and running statistics."""

    dims: tuple[int, ...]  # accepted numbers of input dimensions
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.weight = empty_parameter(num_features, device=device, dtype=dtype) if affine else None
        self.bias = empty_parameter(num_features, device=device, dtype=dtype) if affine and bias else None
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if tracked else None)
        count = zeros((), device=device, dtype=dtypes.int64) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        count = self.num_batches_tracked
        if count is not None:  # files older than PyTorch 0.4.1 lack it
            count = zeros((), dtype=count.dtype) if count.device.type == "meta" else count
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and the batch count to 0."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Reset the running statistics, weight and bias."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_dims(self, input: Tensor) -> None:
        if input.ndim not in self.dims:
            expected = " or ".join(f"{n}D" for n in self.dims)
            raise ArgumentError(f"{type(self).__name__}: expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_dims(input)
        updates_stats = self.training and self.track_running_stats
        if updates_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        has_stats = self.running_mean is not None or self.running_var is not None
        passes_stats = has_stats and (updates_stats or not self.training)
        return self._normalize(
            input,
            self.running_mean if passes_stats else None,
            self.running_var if passes_stats else None,
            self.training or not has_stats,
            self._momentum_of_this_batch() if updates_stats else 0.0,
        )

    def _normalize(
        self, input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, training: bool, momentum: float
    ) -> Tensor:
        return F.batch_norm(input, running_mean, running_var, self.weight, self.bias, training, momentum, self.eps)

    def _momentum_of_this_batch(self) -> float:
        """Return `momentum`, or 1 / number of batches if it is None, which makes the statistics a plain average."""
        if self.momentum is not None:
            return self.momentum
        return 0.0 if self.num_batches_tracked is None else 1.0 / self.num_batches_tracked.item()


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) ⊙ weight + bias for each channel.

    In training, mean and var are those of the batch, and update the running statistics by `momentum` (None averages
    over all batches). In evaluation, they are the running statistics, or those of the batch if none are tracked.

    Args:    as torch.nn.BatchNorm1d
    Shapes:  x (N, C) or (N, C, L) -> the same
    Source:  Ioffe & Szegedy 2015, arXiv:1502.03167
    """

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d for images.  Shapes: x (N, C, H, W) -> the same"""

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d for volumes.  Shapes: x (N, C, D, H, W) -> the same"""

    dims = (5,)


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_dims(input)
        is_batch = input.ndim == self.dims[1]
        channels = input.shape[1 if is_batch else 0]
        if channels != self.num_features:
            what = f"{type(self).__name__}: expected {self.num_features} channels, got input {tuple(input.shape)}"
            if self.affine:
                raise ArgumentError(what)
            warn(f"{what}; num_features is not used because affine=False")
        y = F.instance_norm(
            input if is_batch else input[None],
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return y if is_batch else y[0]


class InstanceNorm1d(_InstanceNorm):
    """BatchNorm1d with separate statistics for each sample, in training and in evaluation.

    Args:    as torch.nn.InstanceNorm1d; with track_running_stats, evaluation uses the running statistics
    Shapes:  x (N, C, L) or (C, L) -> the same
    Source:  Ulyanov et al. 2016, arXiv:1607.08022
    """

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d for images.  Shapes: x (N, C, H, W) or (C, H, W) -> the same"""

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d for volumes.  Shapes: x (N, C, D, H, W) or (C, D, H, W) -> the same"""

    dims = (4, 5)


class GroupNorm(Module):
    """(x - mean) / sqrt(var + eps) ⊙ weight + bias, with mean and var over a group of channels of one sample.

    Args:    as torch.nn.GroupNorm
    Shapes:  x (N, C, ...) -> the same;  weight, bias (C)
    Source:  Wu & He 2018, arXiv:1803.08494
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ArgumentError(f"GroupNorm: {num_groups} groups do not divide {num_channels} channels")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.weight = empty_parameter(num_channels, device=device, dtype=dtype) if affine else None
        self.bias = empty_parameter(num_channels, device=device, dtype=dtype) if affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """x / (k + alpha · mean of x² over `size` neighboring channels)^beta.

    Args:    as torch.nn.LocalResponseNorm
    Shapes:  x (N, C, ...) -> the same
    Source:  Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks", section 3.3
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
