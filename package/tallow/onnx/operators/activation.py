"""ONNX activations.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from collections.abc import Callable

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.onnx.operators.registry import operator

# ONNX's name: first opset, and the function that computes the same.
SAME: dict[str, tuple[int, Callable[..., Tensor]]] = {
    "Relu": (1, F.relu),
    "Sigmoid": (1, tl.sigmoid),
    "Tanh": (1, tl.tanh),
    "Softplus": (1, F.softplus),
    "Softsign": (1, F.softsign),
    "HardSwish": (14, F.hardswish),
    "Mish": (18, F.mish),
}
for _name, (_since, _function) in SAME.items():
    operator(_name, since=_since)(_function)


@operator("LeakyRelu", since=1)
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    """Multiply what is below zero by `alpha`."""
    return F.leaky_relu(x, alpha)


@operator("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """Multiply what is below zero by `slope`, which broadcasts to `x` from its last dim on."""
    return tl.where(x < 0, x * slope, x)


@operator("PRelu", since=1, until=6)
def prelu_channels(x: Tensor, slope: Tensor) -> Tensor:
    """Multiply what is below zero by the slope of its channel."""
    return F.prelu(x, slope)


@operator("Elu", since=1)
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x above zero, and alpha · (exp(x) - 1) below."""
    return F.elu(x, alpha)


@operator("Celu", since=12)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x above zero, and alpha · (exp(x / alpha) - 1) below."""
    return F.celu(x, alpha)


@operator("Selu", since=1)
def selu(x: Tensor, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Tensor:
    """Return gamma · x above zero, and gamma · alpha · (exp(x) - 1) below."""
    return gamma * F.elu(x, alpha)


@operator("ThresholdedRelu", since=10)
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x where it exceeds `alpha`, else zero."""
    return F.threshold(x, alpha, 0.0)


@operator("HardSigmoid", since=1)
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """Return alpha · x + beta within 0 and 1."""
    if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5:
        return F.hardsigmoid(x)
    return tl.clamp(x * alpha + beta, 0, 1)


@operator("Gelu", since=20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Return x · Φ(x), or with `approximate="tanh"` its approximation."""
    return F.gelu(x, approximate=approximate)


@operator("Swish", since=24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return x · sigmoid(alpha · x)."""
    return F.silu(x) if alpha == 1 else x * tl.sigmoid(alpha * x)


@operator("SwiGLU", since=28)
def swiglu(a: Tensor, b: Tensor, *, alpha: float = 1.0) -> Tensor:
    """Return swish(a) · b."""
    return swish(a, alpha=alpha) * b


@operator("Shrink", since=9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """Move towards zero by `bias` what lies outside [-lambd, lambd]; the rest is zero."""
    zero = tl.zeros_like(x)
    return tl.where(x < -lambd, x + bias, tl.where(x > lambd, x - bias, zero)).to(x.dtype)


@operator("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """Return exponential weights along `axis`."""
    return tl.softmax(x, axis)


@operator("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """Return the logarithms of exponential weights along `axis`."""
    return tl.log_softmax(x, axis)


@operator("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """Return 1 at the first maximum along `axis` and 0 elsewhere."""
    return tl.zeros_like(x).scatter(axis, tl.argmax(x, axis, keepdim=True), value=1)


@operator("Softmax", since=1, until=12, whole=True)
def softmax_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    """Take the softmax over all dims from `axis` on."""
    return tl.softmax(x.flatten(axis), -1).reshape(x.shape)


@operator("LogSoftmax", since=1, until=12, whole=True)
def log_softmax_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    """Take the logarithm of the softmax over all dims from `axis` on."""
    return tl.log_softmax(x.flatten(axis), -1).reshape(x.shape)


@operator("Hardmax", since=1, until=12, whole=True)
def hardmax_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    """Return 1 at the first maximum over all dims from `axis` on, and 0 elsewhere."""
    return hardmax(x.flatten(axis)).reshape(x.shape)
