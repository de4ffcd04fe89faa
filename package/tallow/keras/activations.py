"""Activation functions under their Keras names, with Keras' defaults where they differ from PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.keras.lookup import find
from tallow.lazy_names import names_of
from tallow.nn import functional as F

Activation = Callable[[Tensor], Tensor]


def linear(x: Tensor) -> Tensor:
    """Return x unchanged."""
    return x


def relu(x: Tensor, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """Return x above `threshold`, limited to `max_value`, and negative_slope · (x - threshold) below it."""
    if threshold:
        y = tl.where(x > threshold, x, negative_slope * (x - threshold))
    else:
        y = F.leaky_relu(x, negative_slope) if negative_slope else F.relu(x)
    return y if max_value is None else y.clamp(max=max_value)


def leaky_relu(x: Tensor, negative_slope: float = 0.2) -> Tensor:
    """Return x where positive, negative_slope · x elsewhere."""
    return F.leaky_relu(x, negative_slope)


def relu6(x: Tensor) -> Tensor:
    """Return min(max(x, 0), 6)."""
    return F.relu6(x)


def softmax(x: Tensor, axis: int | tuple[int, ...] = -1) -> Tensor:
    """Return exp(x) / Σ exp(x) over `axis`, or over several axes."""
    if isinstance(axis, int):
        return F.softmax(x, dim=axis)
    return (x - tl.logsumexp(x, dim=tuple(axis), keepdim=True)).exp()


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Return log(softmax(x)) over `axis`."""
    return F.log_softmax(x, dim=axis)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Return x where positive, alpha · (exp(x) - 1) elsewhere."""
    return F.elu(x, alpha)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Return x where positive, alpha · (exp(x / alpha) - 1) elsewhere."""
    return F.celu(x, alpha)


def selu(x: Tensor) -> Tensor:
    """Return elu scaled so that it preserves mean 0 and variance 1."""
    return F.selu(x)


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x))."""
    return F.softplus(x)


def softsign(x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return F.softsign(x)


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return tl.sigmoid(x)


def log_sigmoid(x: Tensor) -> Tensor:
    """Return log(sigmoid(x))."""
    return F.logsigmoid(x)


def hard_sigmoid(x: Tensor) -> Tensor:
    """Return 0 below -3, 1 above 3, and x / 6 + ½ between."""
    return F.hardsigmoid(x)


def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return tl.tanh(x)


def hard_tanh(x: Tensor) -> Tensor:
    """Return x limited to the range from -1 to 1."""
    return F.hardtanh(x)


def tanh_shrink(x: Tensor) -> Tensor:
    """Return x - tanh(x)."""
    return F.tanhshrink(x)


def soft_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """Move x towards 0 by `threshold`; return 0 where |x| is at most `threshold`."""
    return F.softshrink(x, threshold)


def hard_shrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """Return x where |x| is above `threshold`, 0 elsewhere."""
    return F.hardshrink(x, threshold)


def threshold(x: Tensor, threshold: float, default_value: float) -> Tensor:
    """Return x above `threshold`, `default_value` elsewhere."""
    return F.threshold(x, threshold, default_value)


def silu(x: Tensor) -> Tensor:
    """Return x σ(x), also called swish."""
    return F.silu(x)


def hard_silu(x: Tensor) -> Tensor:
    """Return x · hard_sigmoid(x)."""
    return F.hardswish(x)


def gelu(x: Tensor, approximate: bool = False) -> Tensor:
    """Return x Φ(x); `approximate` computes Φ with tanh."""
    return F.gelu(x, approximate="tanh" if approximate else "none")


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """Return a · σ(b), with a and b the halves of x along `axis`."""
    return F.glu(x, dim=axis)


def mish(x: Tensor) -> Tensor:
    """Return x · tanh(softplus(x))."""
    return F.mish(x)


def exponential(x: Tensor) -> Tensor:
    """Return exp(x)."""
    return x.exp()


def squareplus(x: Tensor, b: float = 4) -> Tensor:
    """Return (x + √(x² + b)) / 2.  Source: Barron 2021, arXiv:2112.11687"""
    return (x + (x * x + b).sqrt()) / 2


def sparse_plus(x: Tensor) -> Tensor:
    """Return 0 up to -1, x from 1 on, and (x + 1)² / 4 between."""
    return tl.where(x >= 1, x, (x.clamp(min=-1) + 1).square() / 4)


def sparse_sigmoid(x: Tensor) -> Tensor:
    """Return 0 up to -1, 1 from 1 on, and (x + 1) / 2 between."""
    return ((x + 1) / 2).clamp(0, 1)


def sparsemax(x: Tensor, axis: int = -1) -> Tensor:
    """Project x to the nearest probabilities, most of them 0.  Source: Martins & Astudillo 2016, arXiv:1602.02068"""
    ordered = x.sort(axis, descending=True)[0].movedim(axis, -1)
    counts = tl.arange(1, x.shape[axis] + 1, dtype=x.dtype, device=x.device)
    sums = ordered.cumsum(-1)
    support = (ordered - (sums - 1) / counts > 0).to(x.dtype)
    threshold = ((ordered * support).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return (x - threshold.movedim(-1, axis)).clamp(min=0.0)


swish = silu
hard_swish = hard_silu

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    f.__name__: f
    for f in (
        celu, elu, exponential, gelu, glu, hard_shrink, hard_sigmoid, hard_silu, hard_tanh, leaky_relu, linear,
        log_sigmoid, log_softmax, mish, relu, relu6, selu, sigmoid, silu, soft_shrink, softmax, softplus, softsign,
        sparse_plus, sparse_sigmoid, sparsemax, squareplus, tanh, tanh_shrink, threshold,
    )
}  # fmt: skip
ALIASES = {"swish": silu, "hard_swish": hard_silu}


def get(identifier: Any) -> Activation:
    """Return the function for a name; return a callable unchanged, and `linear` for None.

    Raises:  ArgumentError for an unknown name, with similar names; ArgumentTypeError for anything else
    """
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    if not isinstance(identifier, str):
        raise ArgumentTypeError(f"{identifier!r} is neither the name of an activation nor a function")
    return find(identifier, FUNCTIONS | ALIASES, "an activation")


def serialize(activation: Any) -> Any:
    """Return the name of an activation; return a custom function unchanged."""
    return next((name for name, function in FUNCTIONS.items() if function is activation), activation)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Activation:
    """Return the activation that `serialize` described."""
    return get((custom_objects or {}).get(config, config) if isinstance(config, str) else config)


__all__ = ["deserialize", "get", "serialize"]
__all__ += list(FUNCTIONS | ALIASES)

__getattr__, __dir__ = names_of(__name__)
