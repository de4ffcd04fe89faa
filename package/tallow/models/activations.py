"""Activations by their names in configs."""

from __future__ import annotations

import math
from collections.abc import Callable

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.ops.gates import gelu_mul, silu_mul
from tallow.ops.table import Op

Activation = Callable[[Tensor], Tensor]


def _tanh_gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def _clipped_gelu(x: Tensor) -> Tensor:
    """gelu(x), clamped to [-10, 10].  Source: Wu et al. 2020, arXiv:2004.09602, section 4.2"""
    return F.gelu(x).clamp(-10, 10)


def _quick_gelu(x: Tensor) -> Tensor:
    """x σ(1.702 x).  Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2"""
    return x * F.sigmoid(1.702 * x)


def _laplace(x: Tensor) -> Tensor:
    """(1 + erf((x - μ) / σ√2)) / 2,  μ = √½,  σ = √(1 / 4π).  Source: Ma et al. 2022, arXiv:2209.10655, eq. 15"""
    return 0.5 * (1 + ((x - math.sqrt(0.5)) / math.sqrt(0.5 / math.pi)).erf())


def _linear(x: Tensor) -> Tensor:
    return x


def _squared_relu(x: Tensor) -> Tensor:
    """relu(x)².  Source: So et al. 2021, arXiv:2109.08668, section 3"""
    return F.relu(x).square()


def _sqrt_softplus(x: Tensor) -> Tensor:
    return F.softplus(x).sqrt()


ACTIVATIONS: dict[str, Activation] = {
    **dict.fromkeys(("gelu", "gelu_python"), F.gelu),
    **dict.fromkeys(("gelu_fast", "gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate"), _tanh_gelu),
    "gelu_10": _clipped_gelu,
    "hardswish": F.hardswish,
    "laplace": _laplace,
    "leaky_relu": F.leaky_relu,
    "linear": _linear,
    "mish": F.mish,
    "quick_gelu": _quick_gelu,
    "relu": F.relu,
    "relu2": _squared_relu,
    "relu6": F.relu6,
    "sigmoid": F.sigmoid,
    "silu": F.silu,
    "sqrtsoftplus": _sqrt_softplus,
    "swish": F.silu,
    "tanh": F.tanh,
}


# The activations of the kernel "encoder_blocks", and its names for them.
COMPILED: dict[Activation, str] = {F.gelu: "gelu", _tanh_gelu: "gelu_tanh", F.relu: "relu"}


def activation_named(name: str) -> Activation:
    """Return an activation.  Raises: ArgumentError for an unknown name"""
    if name not in ACTIVATIONS:
        raise ArgumentError(f"unknown activation {name!r}", hint=f"use one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def gated(activation: Activation, gate: Tensor, up: Tensor) -> Tensor:
    """Return activation(gate) ⊙ up, as one fused op if possible.  Source: Shazeer 2020, arXiv:2002.05202"""
    fused = GATES.get(activation)
    return activation(gate) * up if fused is None else apply(fused, gate, up)


GATES: dict[Callable[..., Tensor], Op] = {F.silu: silu_mul, _tanh_gelu: gelu_mul}
