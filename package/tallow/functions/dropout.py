"""Dropout of elements or whole channels."""

from __future__ import annotations

import math

import numpy as np

from tallow import devices
from tallow.core.apply import apply, apply_inplace
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError, warn
from tallow.kernels import run
from tallow.ops.checks import expect_float
from tallow.ops.dropout import scaled_mask
from tallow.random import default_generator

# -α' of SELU: the limit of its output for large negative inputs. Klambauer et al. 2017, arXiv:1706.02515
SELU_FLOOR = 1.7580993408473766


def draw_keep(like: Array, shape: tuple[int, ...], p: float) -> Array:
    """Draw booleans, each False with probability p, on the device of `like`."""
    if p in (0, 1):
        return devices.array_module(like).full(shape, p == 0)
    if devices.device_type_of(like) == "cpu":
        return default_generator.numpy.random(shape, np.float32) >= p
    key, first = default_generator.reserve(-(-math.prod(shape) // 4))
    return run("random_keep", like, shape, p, key, first)


def check_probability(name: str, p: float) -> None:
    """Raise ArgumentError unless p is a probability."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")


def _drop(name: str, input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    check_probability(name, p)
    if not training or p == 0:
        return input
    expect_float(name, input.array)
    keep = draw_keep(input.physical().array, shape, p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    if inplace:
        return apply_inplace(scaled_mask, input, keep, scale)
    return apply(scaled_mask, input, keep, scale)


@public("tl F")
@recorded_whole
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p and divide the others by 1 - p. Return the input if not `training`.

    Source:  Hinton et al. 2012, arXiv:1207.0580
    """
    return _drop("dropout", input, p, training, inplace, input.array.shape)


def _channels(input: Tensor, batched: bool) -> tuple[int, ...]:
    """Return the shape of a mask with one element for each channel of each sample."""
    leading = 2 if batched else 1
    return (*input.array.shape[:leading], *[1] * (input.array.ndim - leading))


@public("F")
@recorded_whole
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, L) or (C, L) -> the same"""
    if input.ndim not in (2, 3):
        raise ShapeError(f"dropout1d: expected (N, C, L) or (C, L), got {tuple(input.shape)}")
    return _drop("dropout1d", input, p, training, inplace, _channels(input, input.ndim == 3))


@public("F")
@recorded_whole
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, H, W) -> the same

    As in PyTorch, a 3-D input is (N, C, L), not (C, H, W), and gives a warning.
    """
    if input.ndim not in (3, 4):
        warn(f"dropout2d: expected (N, C, H, W), got {tuple(input.shape)}")
    elif input.ndim == 3:
        warn("dropout2d: a 3-D input is treated as (N, C, L); use dropout1d for it")
    if input.ndim < 2:
        raise ShapeError(f"dropout2d: no channels in {tuple(input.shape)}")
    return _drop("dropout2d", input, p, training, inplace, _channels(input, batched=True))


@public("F")
@recorded_whole
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, D, H, W) or (C, D, H, W) -> the same"""
    if input.ndim not in (4, 5):
        warn(f"dropout3d: expected (N, C, D, H, W) or (C, D, H, W), got {tuple(input.shape)}")
    if input.ndim < 2:
        raise ShapeError(f"dropout3d: no channels in {tuple(input.shape)}")
    return _drop("dropout3d", input, p, training, inplace, _channels(input, batched=input.ndim != 4))


@recorded_whole
def drop_channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Zero whole channels.  Shapes: input (N, C, ...) -> the same"""
    if input.ndim < 2:
        raise ShapeError(f"feature_dropout: no channels in {tuple(input.shape)}")
    return _drop("feature_dropout", input, p, training, inplace, _channels(input, batched=True))


@public("tl F")
@recorded_whole
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Set elements to SELU's lowest value, then scale and shift all to keep mean 0 and variance 1.

    Source:  Klambauer et al. 2017, arXiv:1706.02515, section 3
    """
    return _alpha_drop("alpha_dropout", input, p, training, inplace, input.array.shape)


@public("tl F")
@recorded_whole
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply `alpha_dropout` to whole channels.  Shapes: input (N, C, ...) -> the same"""
    if input.ndim < 2 and training and p:
        raise ShapeError(f"feature_alpha_dropout: no channels in {tuple(input.shape)}")
    return _alpha_drop("feature_alpha_dropout", input, p, training, inplace, _channels(input, batched=True))


def _alpha_drop(name: str, input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    check_probability(name, p)
    if not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    expect_float(name, input.array)
    keep = draw_keep(input.physical().array, shape, p)
    scale = 1 / math.sqrt((SELU_FLOOR**2 * p + 1) * (1 - p))
    dropped = devices.array_module(keep).asarray(scale * SELU_FLOOR * (keep - 1.0 + p), np.float32)
    shift = wrap(dropped).to(input.dtype)
    if inplace:
        return apply_inplace(scaled_mask, input, keep, scale).add_(shift)
    return apply(scaled_mask, input, keep, scale) + shift
