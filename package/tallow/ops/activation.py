"""Activations: elementwise functions that networks put between their layers."""

from __future__ import annotations

from tallow import kernels
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import DtypeError
from tallow.ops.arithmetic import kind
from tallow.ops.table import Result, op


def check_float(name: str, input: Array) -> None:
    """Raise DtypeError for integers and booleans, which PyTorch's activations do not take."""
    if kind(input) != "f":
        raise DtypeError(f"{name}: not implemented for {input.dtype}", mend="convert to float first, e.g. with .float()")


@op("tl Tensor Tensor_ F", dtypes="float")
def sigmoid(input: Array) -> Result:
    """1 / (1 + exp(-input))"""
    value = _sigmoid(input)
    return value, lambda g: (g * value * (1 - value),)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + array_module(x).exp(-x))


@op("tl Tensor Tensor_ F")
def relu(input: Array) -> Result:
    """max(input, 0)"""
    value = array_module(input).maximum(input, 0)
    return value, lambda g: (g * (value > 0),)


@op("F")
def silu(input: Array) -> Result:
    """input · sigmoid(input)

    Source: Elfwing et al. 2017, arXiv:1702.03118; Hendrycks & Gimpel 2016, arXiv:1606.08415.
    """
    check_float("silu", input)

    def backward(g: Array) -> tuple[Array]:
        s = _sigmoid(input)
        return (g * (s * (1 + input * (1 - s))),)

    return kernels.run("silu", input), backward


@kernels.kernel("silu", "array")
def _silu(x: Array) -> Array:
    return x / (1 + array_module(x).exp(-x))
