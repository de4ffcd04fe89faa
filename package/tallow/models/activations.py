"""Activations by the names that configs give them."""

from __future__ import annotations

from collections.abc import Callable

from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.tensor import Tensor

Activation = Callable[[Tensor], Tensor]


def _tanh_gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _quick_gelu(x: Tensor) -> Tensor:
    """x σ(1.702 x).  Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2"""
    return x * F.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Activation] = {
    "gelu": F.gelu,
    "gelu_fast": _tanh_gelu,
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "mish": F.mish,
    "quick_gelu": _quick_gelu,
    "relu": F.relu,
    "relu6": F.relu6,
    "sigmoid": F.sigmoid,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": F.tanh,
}


# What the kernel "encoder_blocks" has, and how it calls them.
COMPILED: dict[Activation, str] = {F.gelu: "gelu", _tanh_gelu: "gelu_tanh", F.relu: "relu"}


def activation_named(name: str) -> Activation:
    """Raises:  ArgumentError for a name that configs do not use"""
    if name not in ACTIVATIONS:
        raise ArgumentError(f"activation {name!r}", mend=f"one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]
