"""Exporters of functions that create tensors of sizes that vary, or draw random numbers.

Calls with fixed sizes are constants, which the export computes; see tallow.onnx.exporters.conversion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.registry import exports


def _sizes(size: Any) -> list[Any]:
    """Return sizes that were passed one by one, as one sequence, or by name."""
    sizes = list(size)
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes


def filled(g: Builder, sizes: Any, number: Any) -> Value:
    """Return a tensor of one number, in the dtype of the node's result."""
    if isinstance(number, Value):
        return g.op("Expand", g.cast(number, g.result.dtype), g.ints(sizes))
    return g.op("Expand", g.scalar(number, g.result), g.ints(sizes), shape=g.result.shape)


@exports("zeros", "empty")
def _(g: Builder, sizes: Any = (), size: Any = ()) -> Value:
    return filled(g, _sizes(sizes or size), 0)


@exports("ones")
def _(g: Builder, sizes: Any = (), size: Any = ()) -> Value:
    return filled(g, _sizes(sizes or size), 1)


@exports("full")
def _(g: Builder, size: Any, fill_value: Any) -> Value:
    return filled(g, size, fill_value)


@exports("Tensor.new_zeros", "Tensor.new_empty")
def _(g: Builder, input: Value, sizes: Any = (), size: Any = ()) -> Value:
    return filled(g, _sizes(sizes or size), 0)


@exports("Tensor.new_ones")
def _(g: Builder, input: Value, sizes: Any = (), size: Any = ()) -> Value:
    return filled(g, _sizes(sizes or size), 1)


@exports("Tensor.new_full")
def _(g: Builder, input: Value, size: Any, fill_value: Any) -> Value:
    return filled(g, size, fill_value)


@exports("zeros_like", "empty_like")
def _(g: Builder, input: Value) -> Value:
    return filled(g, g.sizes(input), 0)


@exports("ones_like")
def _(g: Builder, input: Value) -> Value:
    return filled(g, g.sizes(input), 1)


@exports("full_like")
def _(g: Builder, input: Value, fill_value: Any) -> Value:
    return filled(g, g.sizes(input), fill_value)


@exports("arange")
def _(g: Builder, bounds: Any = (), start: Any = 0, end: Any = None, step: Any = 1) -> Value:
    given = list(bounds)
    if len(given) == 1:
        given = [start, given[0], step]
    elif not given:
        given = [start, end, step]
    start, end, step = [*given, step][:3]
    is_float = any(isinstance(n, float) for n in (start, end, step))
    kind = dtypes.float32 if is_float else dtypes.int64
    like = Value("", kind)
    made = g.op("Range", *(g.scalar(n, like) for n in (start, end, step)), shape=(None,))
    return g.cast(made, g.result.dtype)


@exports("eye")
def _(g: Builder, n: Any, m: Any = None) -> Value:
    shape = g.ints([n, n if m is None else m])
    base = g.op("Expand", g.constant(0.0), shape, shape=(None, None))
    return g.cast(g.op("EyeLike", base), g.result.dtype)


@exports("tensor", "as_tensor", "scalar_tensor", "Tensor.new_tensor")
def _(g: Builder, data: Any = None, s: Any = None, input: Value | None = None) -> Value:
    """Return numbers, some of which vary, as a tensor. The dtype of `input` is that of the node's result."""
    data = s if data is None else data
    if isinstance(data, list | tuple):
        if any(isinstance(x, list | tuple) for x in data):
            raise UnsupportedError("a tensor from lists of lists with numbers that vary")
        parts = [g.op("Unsqueeze", g.scalar(x, g.result), [0]) for x in data]
        return g.op("Concat", *parts, axis=0)
    return g.scalar(data, g.result)


@exports("rand", "rand_like")
def _(g: Builder, sizes: Any = (), size: Any = (), input: Any = None) -> Value:
    return _drawn(g, "RandomUniformLike", _sizes(sizes or size) if input is None else g.sizes(input))


@exports("randn", "randn_like")
def _(g: Builder, sizes: Any = (), size: Any = (), input: Any = None) -> Value:
    return _drawn(g, "RandomNormalLike", _sizes(sizes or size) if input is None else g.sizes(input))


def _drawn(g: Builder, operator: str, sizes: Any) -> Value:
    made: Value = g.op(operator, filled(g, sizes, 0), dtype=g.result.dtype)
    return made


@exports("dropout")
def _(g: Builder, input: Value, p: float = 0.5, training: bool = True) -> Value:
    if not training or p == 0:
        return input
    return g.op("Dropout", input, g.constant(np.float32(p).reshape(())), g.constant(np.array(True)))


@exports("bernoulli")
def _(g: Builder, input: Value, p: Any = None) -> Value:
    if p is not None:
        input = filled(g, g.sizes(input), p)
    return g.op("Bernoulli", input)


@exports("rrelu")
def _(g: Builder, input: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Value:
    if training:
        raise UnsupportedError("random slopes: export in evaluation mode")
    return g.op("LeakyRelu", input, alpha=(lower + upper) / 2)
