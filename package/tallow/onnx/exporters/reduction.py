"""Exporters of reductions, scans and searches along dims."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.elementwise import logaddexp
from tallow.onnx.exporters.registry import exports

MOST_PARTS = 64  # of a dim that is summed part by part


def _dims(input: Value, dim: Any) -> list[int] | None:
    """Return the dims of a reduction; None for all of them."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return None
    return [d % max(input.ndim, 1) for d in (dim if isinstance(dim, list | tuple) else [dim])]


def reduced(g: Builder, operator: str, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """Return a reduction over dims, or over all."""
    dims = _dims(input, dim)
    if not input.ndim:
        return input
    made: Value = g.op(operator, input, dims, keepdims=int(keepdim))
    return made


def _cast(g: Builder, input: Value, dtype: Any) -> Value:
    """Return the operand of a sum: integers and booleans are added in int64."""
    return g.cast(input, g.result.dtype if dtype is None else dtypes.as_dtype(dtype))


@exports("sum")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return reduced(g, "ReduceSum", _cast(g, input, dtype), dim, keepdim)


@exports("mean")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return reduced(g, "ReduceMean", _cast(g, input, dtype), dim, keepdim)


@exports("prod")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    return reduced(g, "ReduceProd", _cast(g, input, dtype), dim, keepdim)


@exports("nansum")
def nansum(g: Builder, input: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    """Return the sum, with zero in place of NaN."""
    input = _cast(g, input, dtype)
    if not input.dtype.is_floating_point:
        return reduced(g, "ReduceSum", input, dim, keepdim)
    known = g.op("Where", g.op("IsNaN", input), g.scalar(0.0, input), input, dtype=input.dtype, shape=input.shape)
    return reduced(g, "ReduceSum", known, dim, keepdim)


@exports("nanmean")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Value:
    total = nansum(g, input, dim, keepdim, dtype)
    known = g.op("Cast", g.op("Not", g.op("IsNaN", input)), dtype=total.dtype, to=total.dtype, shape=input.shape)
    return g.op("Div", total, reduced(g, "ReduceSum", known, dim, keepdim))


@exports("count_nonzero")
def _(g: Builder, input: Value, dim: Any = None) -> Value:
    found = g.op("Cast", g.cast(input, dtypes.bool), dtype=dtypes.int64, to=dtypes.int64, shape=input.shape)
    return reduced(g, "ReduceSum", found, dim)


@exports("amax")
def amax(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """Return the maximum."""
    if input.dtype is dtypes.bool:
        return _of_booleans(g, "ReduceMax", input, dim, keepdim)
    return reduced(g, "ReduceMax", input, dim, keepdim)


@exports("amin")
def amin(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """Return the minimum."""
    if input.dtype is dtypes.bool:
        return _of_booleans(g, "ReduceMin", input, dim, keepdim)
    return reduced(g, "ReduceMin", input, dim, keepdim)


@exports("aminmax")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> tuple[Value, Value]:
    return amin(g, input, dim, keepdim), amax(g, input, dim, keepdim)


@exports("all")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _of_booleans(g, "ReduceMin", input, dim, keepdim)


@exports("any")
def _(g: Builder, input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _of_booleans(g, "ReduceMax", input, dim, keepdim)


def _of_booleans(g: Builder, operator: str, input: Value, dim: Any, keepdim: bool) -> Value:
    """Reduce in int32: onnxruntime has no reductions of booleans in opset 18."""
    numbers = g.op("Cast", g.cast(input, dtypes.bool), dtype=dtypes.int32, to=dtypes.int32, shape=input.shape)
    return g.cast(reduced(g, operator, numbers, dim, keepdim), g.result.dtype)


@exports("logsumexp")
def _(g: Builder, input: Value, dim: Any, keepdim: bool = False) -> Value:
    return reduced(g, "ReduceLogSumExp", input, dim, keepdim)


@exports("linalg_vector_norm")
def linalg_vector_norm(
    g: Builder, x: Value, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    """Return the norm of vectors along dims."""
    x = x if dtype is None else g.cast(x, dtypes.as_dtype(dtype))
    if ord in (1, 2) and x.ndim:
        return reduced(g, f"ReduceL{int(ord)}", x, dim, keepdim)
    size = g.op("Abs", x, shape=x.shape)
    if ord in (float("inf"), float("-inf")):
        return reduced(g, "ReduceMax" if ord > 0 else "ReduceMin", size, dim, keepdim)
    if ord == 0:
        return reduced(g, "ReduceSum", g.op("Sign", size, shape=x.shape), dim, keepdim)
    total = reduced(g, "ReduceSum", g.op("Pow", size, float(ord), shape=x.shape), dim, keepdim)
    return g.op("Pow", total, 1.0 / float(ord))


@exports("var")
def var(g: Builder, input: Value, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Value:
    """Return the mean square of the differences from the mean, with a correction of the count."""
    dims = _dims(input, dim)
    dims = list(range(input.ndim)) if dims is None else dims
    centred = g.op("Sub", input, reduced(g, "ReduceMean", input, dims, True), shape=input.shape)
    total = reduced(g, "ReduceSum", g.op("Mul", centred, centred, shape=input.shape), dims, keepdim)
    count = g.product([g.size(input, d) for d in dims])
    if isinstance(count, Value):
        divisor = g.op("Max", g.op("Sub", g.cast(count, input.dtype), float(correction or 0)), 0.0)
    else:
        divisor = g.scalar(float(max(count - (correction or 0), 0)), input)
    return g.op("Div", total, divisor)


@exports("std")
def _(g: Builder, input: Value, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Value:
    return g.op("Sqrt", var(g, input, dim, correction, keepdim))


@exports("argmax")
def _(g: Builder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _argument(g, "ArgMax", input, dim, keepdim)


@exports("argmin")
def _(g: Builder, input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _argument(g, "ArgMin", input, dim, keepdim)


def _argument(g: Builder, operator: str, input: Value, dim: int | None, keepdim: bool) -> Value:
    if dim is None:
        place = g.op(operator, g.reshape(input, [-1]), axis=0, keepdims=0)
        made: Value = g.reshape(place, [1] * input.ndim) if keepdim else place
        return made
    if not input.ndim:
        return g.constant(0)
    made = g.op(operator, input, axis=dim, keepdims=int(keepdim))
    return made


@exports("max_along")
def _(g: Builder, input: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return amax(g, input, dim, keepdim), _argument(g, "ArgMax", input, dim, keepdim)


@exports("min_along")
def _(g: Builder, input: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return amin(g, input, dim, keepdim), _argument(g, "ArgMin", input, dim, keepdim)


@exports("topk")
def topk(
    g: Builder, input: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    """Return the largest elements along a dim and their places."""
    values, places = g.op("TopK", input, [k], axis=dim, largest=int(largest), sorted=int(sorted), outputs=2)
    return values, _indices(places)


def _indices(value: Value) -> Value:
    return Value(value.name, dtypes.int64, value.shape)


@exports("sort")
def sort(g: Builder, input: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    """Return the elements in order and their places: the top k, for all k."""
    if not input.ndim:
        return input, g.constant(0)
    return topk(g, input, g.size(input, dim), dim, descending)


@exports("argsort")
def _(g: Builder, input: Value, dim: int = -1, descending: bool = False) -> Value:
    return sort(g, input, dim, descending)[1]


@exports("kthvalue")
def kthvalue(g: Builder, input: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """Return the k-th smallest element along a dim and its place."""
    values, places = topk(g, input, k, dim, False)
    found = [g.op("Gather", x, g.constant([k - 1]), axis=dim) for x in (values, places)]
    found = found if keepdim else [g.op("Squeeze", x, [dim]) for x in found]
    return found[0], _indices(found[1])


@exports("median_along")
def _(g: Builder, input: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    if not input.ndim:
        return input, g.constant(0)
    size = g.size(input, dim)
    if isinstance(size, Value):
        raise UnsupportedError("the median along a dim whose size varies")
    return kthvalue(g, input, (size + 1) // 2, dim, keepdim)


@exports("cumsum")
def _(g: Builder, input: Value, dim: int, dtype: Any = None) -> Value:
    input = _cast(g, input, dtype)
    return g.op("CumSum", input, g.constant(dim)) if input.ndim else input


@exports("logcumsumexp")
def _(g: Builder, input: Value, dim: int) -> Value:
    """Return the logarithm of sums of exponentials, relative to the greatest element so far."""
    size = g.size(input, dim) if input.ndim else 1
    if not input.ndim:
        return input
    if isinstance(size, Value) or size > MOST_PARTS:
        raise UnsupportedError("a dim whose size varies, or is large")
    parts = g.op("Split", input, axis=dim, num_outputs=size, outputs=size) if size > 1 else (input,)
    sums = [parts[0]]
    for part in parts[1:]:
        sums.append(logaddexp(g, sums[-1], part))
    made: Value = g.op("Concat", *sums, axis=dim) if size > 1 else input
    return made
