"""Neural network functions: activations, normalizations, losses, attention, and pixel rearrangement."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.keras import activations
from tallow.keras.config import epsilon as default_epsilon
from tallow.keras.functions.arrays import one_hot
from tallow.keras.functions.operands import floats, tensor
from tallow.nn import functional as F
from tallow.ops.dims import normalize_dims

NOT_OPS = ("exponential", "gelu", "linear", "mish")  # activations that keras.ops lacks or defines differently


def _accept_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def apply(x: Any, *args: Any, **kwargs: Any) -> Any:
        return function(tensor(x), *args, **kwargs)

    return apply


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Apply activations.gelu, by default with the tanh approximation."""
    return activations.gelu(tensor(x), approximate)


def multi_hot(inputs: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> Tensor:
    """Return vectors with ones at all indices of a sample, and zeros elsewhere.

    Shapes:  inputs (N) -> (num_classes), or (B, N) -> (B, num_classes)
    """
    x = tensor(inputs)
    return one_hot(x, num_classes, axis, dtype or "float32").amax(1 if x.ndim > 1 else 0)


# ----------------------------------------------------------------------------------------------------- normalizations


def normalize(x: Any, axis: int | Sequence[int] | None = -1, order: float = 2, epsilon: float | None = None) -> Tensor:
    """Divide vectors along an axis by their norm of this order; two axes use a matrix norm."""
    x = floats(x)
    dims = axis if axis is None or isinstance(axis, int) else tuple(axis)
    size = tl.linalg.vector_norm(x, order) if axis is None else tl.linalg.norm(x, order, dims, keepdim=True)
    return x / size.clamp(min=1e-12 if epsilon is None else epsilon)


def moments(
    x: Any, axes: int | Sequence[int], keepdims: bool = False, synchronized: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance."""
    if synchronized:
        raise ArgumentError(
            "moments: synchronized=True", hint="remove it; synchronization across devices is not supported"
        )
    x = floats(x)
    dims = (axes,) if isinstance(axes, int) else tuple(axes)
    return x.mean(dims, keepdim=keepdims), x.var(dims, unbiased=False, keepdim=keepdims)


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> Tensor:
    """Return (x - mean) / √(variance + epsilon) · scale + offset, with all of them vectors along `axis`."""
    x = floats(x)
    shape = [1] * x.ndim
    shape[axis] = -1
    mean, variance = floats(mean).reshape(*shape), floats(variance).reshape(*shape)
    factor = (variance + epsilon).rsqrt()
    y = (x - mean) * (factor if scale is None else factor * floats(scale).reshape(*shape))
    return y if offset is None else y + floats(offset).reshape(*shape)


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: int | Sequence[int] = -1, epsilon: float | None = None
) -> Tensor:
    """Return (x - mean) / √(variance + epsilon) · gamma + beta, with statistics of each sample over some axes."""
    x = floats(x)
    axes = sorted(normalize_dims(axis, x.ndim, "layer_normalization"))
    variance, mean = tl.var_mean(x, axes, unbiased=False, keepdim=True)
    y = (x - mean) * (variance + (default_epsilon() if epsilon is None else epsilon)).rsqrt()
    y = y if gamma is None else y * _broadcast_parameter(gamma, x, axes)
    return y if beta is None else y + _broadcast_parameter(beta, x, axes)


def rms_normalization(
    x: Any, scale: Any = None, axis: int | Sequence[int] = -1, epsilon: float | None = None
) -> Tensor:
    """Return x / √(mean of x² + epsilon) · scale over some axes."""
    x = floats(x)
    axes = sorted(normalize_dims(axis, x.ndim, "rms_normalization"))
    y = x * (x.square().mean(axes, keepdim=True) + (default_epsilon() if epsilon is None else epsilon)).rsqrt()
    return y if scale is None else y * _broadcast_parameter(scale, x, axes)


def _broadcast_parameter(parameter: Any, x: Tensor, axes: list[int]) -> Tensor:
    parameter = floats(parameter)
    if parameter.ndim == x.ndim:
        return parameter
    return parameter.reshape(*(n if a in axes else 1 for a, n in enumerate(x.shape)))


# ------------------------------------------------------------------------------------------------------------- losses


def _same_shape(function: str, one: Tensor, other: Tensor) -> None:
    if one.shape != other.shape or not one.ndim:
        raise ShapeError(f"{function}: shapes {tuple(one.shape)} and {tuple(other.shape)} must be the same")


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """Return the binary cross-entropy of each element.

    Shapes:  target and output (...) -> the same
    """
    target, output = floats(target), floats(output)
    _same_shape("binary_crossentropy", target, output)
    if from_logits:
        return F.binary_cross_entropy_with_logits(output, target, reduction="none")
    return F.binary_cross_entropy(output.clamp(default_epsilon(), 1 - default_epsilon()), target, reduction="none")


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """Return the cross-entropy of each sample with a target distribution.

    Shapes:  target and output (..., C) -> (...)
    """
    target, output = floats(target), floats(output)
    _same_shape("categorical_crossentropy", target, output)
    return -(target * _log_probabilities(output, from_logits, axis)).sum(axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """Return the cross-entropy of each sample with a class index.

    Shapes:  target (...) or (..., 1) of class indices, output (..., C) -> (...)
    """
    target, output = tensor(target).long(), floats(output)
    if target.ndim == output.ndim and target.shape[axis] == 1:
        target = target.squeeze(axis)
    if target.ndim != output.ndim - 1:
        raise ShapeError(
            f"sparse_categorical_crossentropy: target {tuple(target.shape)} for output {tuple(output.shape)}"
        )
    selected = tl.take_along_dim(_log_probabilities(output, from_logits, axis), target.unsqueeze(axis), axis)
    return -selected.squeeze(axis)


def _log_probabilities(output: Tensor, from_logits: bool, axis: int) -> Tensor:
    if from_logits:
        return F.log_softmax(output, dim=axis)
    return (output / output.sum(axis, keepdim=True)).clamp(default_epsilon(), 1 - default_epsilon()).log()


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Tensor:
    """Return the connectionist temporal classification loss of each sample.

    Shapes:  target (B, N) of labels, output (B, T, C) of logits, target_length and output_length (B) -> (B)
    """
    log_probabilities = F.log_softmax(floats(output), dim=-1).transpose(0, 1)
    lengths = tensor(output_length).long(), tensor(target_length).long()
    return F.ctc_loss(log_probabilities, tensor(target).long(), *lengths, blank=mask_index, reduction="none")


def psnr(x1: Any, x2: Any, max_val: float) -> Tensor:
    """Return the peak signal-to-noise ratio.

    Units:   decibels
    """
    x1, x2 = floats(x1), floats(x2)
    _same_shape("psnr", x1, x2)
    return 20 * tl.log10(tl.tensor(float(max_val), dtype=x1.dtype)) - 10 * tl.log10((x1 - x2).square().mean())


# ------------------------------------------------------------------------------------------------- attention and pixels


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """Return softmax(query keyᵀ · scale + bias) value.

    Args:
        mask: True where a query attends to a key; mask and bias broadcast to (B, H, T, S); only one of them may be set.
        flash_attention: ignored, because tallow.kernels chooses the kernel.
        attn_logits_soft_cap: bound of the scores, applied with tanh.

    Shapes:  query (B, T, H, K), key and value (B, S, G, K), G a divisor of H -> (B, T, H, K)
    """
    q, k, v = floats(query), floats(key), floats(value)
    if {q.ndim, k.ndim, v.ndim} != {4}:
        raise ShapeError(f"dot_product_attention: expected 4 dims, got {q.ndim}, {k.ndim} and {v.ndim}")
    if bias is not None and mask is not None:
        raise ArgumentError("dot_product_attention: bias and mask are both set", hint="pass only one of them")
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    allowed = None if mask is None else tensor(mask).to(tl.bool)
    if is_causal and (allowed is not None or bias is not None or attn_logits_soft_cap is not None):
        causal = tl.ones(q.shape[2], k.shape[2], dtype=tl.bool, device=q.device).tril()
        allowed, is_causal = causal if allowed is None else allowed & causal, False
    if attn_logits_soft_cap is not None:
        return _soft_capped_attention(q, k, v, allowed, bias, scale, attn_logits_soft_cap).transpose(1, 2)
    attn_mask: Any = allowed
    if bias is not None:
        attn_mask = floats(bias) if allowed is None else floats(bias).masked_fill(allowed.logical_not(), -1e30)
    enable_gqa = q.shape[1] != k.shape[1]
    y = F.scaled_dot_product_attention(q, k, v, attn_mask, 0.0, is_causal, scale, enable_gqa=enable_gqa)
    return y.transpose(1, 2)


def _soft_capped_attention(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, bias: Any, scale: float | None, cap: float
) -> Tensor:
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = (scores / cap).tanh() * cap
    scores = scores if bias is None else scores + floats(bias)
    scores = scores if allowed is None else scores.masked_fill(allowed.logical_not(), float("-inf"))
    return F.softmax(scores, dim=-1) @ v


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return sliding windows as columns.

    Shapes:  x (B, C, H, W) -> (B, C · window, windows)
    """
    return F.unfold(tensor(x), kernel_size, dilation, padding, stride)


def fold(x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Sum windows at their positions; the adjoint of `unfold`."""
    return F.fold(tensor(x), output_size, kernel_size, dilation, padding, stride)


def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Move blocks of pixels to the channels.

    Shapes:  x (B, H, W, C) -> (B, H / size, W / size, C · size²)
    """
    x, size = tensor(x), block_size
    if data_format == "channels_last":
        B, H, W, C = x.shape
        blocks = x.reshape(B, H // size, size, W // size, size, C).permute(0, 1, 3, 2, 4, 5)
        return blocks.reshape(B, H // size, W // size, C * size**2)
    B, C, H, W = x.shape
    blocks = x.reshape(B, C, H // size, size, W // size, size).permute(0, 1, 3, 5, 2, 4)
    return blocks.reshape(B, C * size**2, H // size, W // size)


def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Move channels to blocks of pixels; the inverse of `space_to_depth`."""
    x, size = tensor(x), block_size
    if data_format == "channels_last":
        B, H, W, C = x.shape
        blocks = x.reshape(B, H, W, size, size, C // size**2).permute(0, 1, 3, 2, 4, 5)
        return blocks.reshape(B, H * size, W * size, C // size**2)
    B, C, H, W = x.shape
    blocks = x.reshape(B, C // size**2, size, size, H, W).permute(0, 1, 4, 2, 5, 3)
    return blocks.reshape(B, C // size**2, H * size, W * size)


OWN = (
    batch_normalization, binary_crossentropy, categorical_crossentropy, ctc_loss, depth_to_space, dot_product_attention,
    fold, gelu, layer_normalization, moments, multi_hot, normalize, one_hot, psnr, rms_normalization, space_to_depth,
    sparse_categorical_crossentropy, unfold,
)  # fmt: skip
ACTIVATIONS = activations.FUNCTIONS | activations.ALIASES
NN: dict[str, Callable[..., Any]] = {
    **{name: _accept_arrays(f) for name, f in ACTIVATIONS.items() if name not in NOT_OPS},
    **{function.__name__: function for function in OWN},
}
