"""Selecting elements by a condition, and clamping them to bounds."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.devices import array_module
from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels import kernel, run
from tallow.kernels.table import Limit
from tallow.ops.filling import constant, factor, placed
from tallow.ops.memory_format import standard_order
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Index, Result, op

BOOL = np.dtype(np.bool_)
BITS = {2: np.int16, 4: np.int32, 8: np.int64}
_where = unwrap(np.where)  # without the search for other array types, an eighth of a small call


def masked(values: Array, mask: Array | bool) -> Array:
    """Return the floats where the mask is true and 0 elsewhere, broadcast.

    Their product would be NaN where they are infinite; that of their bits takes a thirtieth of the time of `where`.
    """
    if values.itemsize not in BITS:  # complex128
        return array_module(values).where(mask, values, values.dtype.type(0))
    selected: Array = (values.view(BITS[values.itemsize]) * mask).view(values.dtype)
    return selected


def _check_mask(name: str, mask: Any) -> None:
    if type(mask) is np.ndarray and mask.dtype is BOOL:
        return
    if getattr(mask, "dtype", None) != BOOL:
        got = dtypes.dtype_of(mask).name if hasattr(mask, "dtype") else type(mask).__name__
        raise DtypeError(
            f"{name}: only supports boolean masks, but got mask with dtype {got}",
            hint="compare, or convert with .bool()",
        )


def select(condition: Array, yes: Array | Scalar, no: Array | Scalar) -> Array:
    """Return `yes` where the condition is true and `no` elsewhere, broadcast.

    Where neighbours differ, as after most comparisons, NumPy's `where` takes thirty times as long as the kernel.
    """
    selected: Array = run("select", condition, yes, no)
    return selected


@kernel("select", "array")
def select_array(condition: Array, yes: Array | Scalar, no: Array | Scalar) -> Array:
    """Return `yes` where the condition is true and `no` elsewhere, broadcast."""
    return array_module(condition).where(condition, yes, no)


@kernel("clamp_min", "array")
def at_least_array(x: Array, bound: Array | Scalar) -> Array:
    """Return the larger of each element and the bound."""
    return array_module(x).maximum(x, bound)


@kernel("clamp_max", "array")
def at_most_array(x: Array, bound: Array | Scalar) -> Array:
    """Return the smaller of each element and the bound."""
    return array_module(x).minimum(x, bound)


@kernel("clamp", "array")
def between_array(x: Array, low: Array | Scalar, high: Array | Scalar) -> Array:
    """Return min(max(x, low), high)."""
    return at_most(at_least(x, low), high)


@kernel("clamp_backward", "array")
def masked_between_array(g: Array, x: Array, low: Scalar, high: Scalar) -> Array:
    """Return g where x is between the bounds and 0 elsewhere."""
    return masked(g, (x > low) & (x < high))


SELECT, BOUNDS = Limit("select"), Limit("clamp_min", "clamp_max", "clamp")


def at_least(x: Array, bound: Array | Scalar) -> Array:
    """Return max(x, bound). NumPy takes three times as long with a number as with an array."""
    value: Array = run("clamp_min", x, bound)
    return value


def at_most(x: Array, bound: Array | Scalar) -> Array:
    """Return min(x, bound)."""
    value: Array = run("clamp_max", x, bound)
    return value


def between(x: Array, low: Array | Scalar, high: Array | Scalar) -> Array:
    """Return min(max(x, low), high)."""
    value: Array = run("clamp", x, low, high)
    return value


def masked_between(g: Array, x: Array, low: Scalar, high: Scalar) -> Array:
    """Return the gradient g where x is between the bounds, which it is not at them, and 0 elsewhere."""
    value: Array = run("clamp_backward", g, x, low, high)
    return value


def _where_value(condition: Array, input: Array, other: Array) -> Array:
    if condition.dtype is not BOOL:
        _check_mask("where", condition)
    if input.size < SELECT.size and (input.ndim or getattr(other, "size", 0) < SELECT.size):
        return _where(condition, input, other)
    return select(condition, input, other)


@op("", dtypes="promote", value=_where_value, batched="elementwise")
def where(condition: Index, input: Array | Scalar, other: Array | Scalar) -> Result:
    """Return `input` where the condition is true and `other` elsewhere, broadcast."""
    _check_mask("where", condition)
    xp = array_module(condition)
    if not hasattr(input, "dtype") and not hasattr(other, "dtype"):
        input = placed(np.asarray(input, dtypes.result_type((input, other)).storage), xp)
    return select(condition, input, other), lambda g: (lambda: masked(g, condition), lambda: masked(g, ~condition))


where.piecewise()


@op("tl Tensor Tensor_", dtypes="first", batched="itself")
def masked_fill(input: Array, mask: Index, value: Array | Scalar) -> Result:
    """Return `value` where the mask is true and `input` elsewhere; the value is a number or a zero-dim tensor.

    Dtypes: that of the input, also for a value of another one.
    """
    _check_mask("masked_fill", mask)
    if getattr(value, "ndim", 0):
        raise ShapeError(f"masked_fill: the value must have no dims, got shape {np.shape(value)}", hint="use where")
    xp = array_module(input)
    if not hasattr(value, "dtype"):
        value = placed(constant(value, dtypes.dtype_of(input), "masked_fill"), xp)
    result = standard_order(select(mask, xp.asarray(value, input.dtype), input))
    return result, lambda g: (lambda: masked(g, ~mask), lambda: masked(g, mask).sum())


@masked_fill.second
def _(g: Derived, *, mask: Derived) -> Gradients:
    return [g.masked_fill(mask, 0), g.masked_fill(~mask, 0).sum()]


def _bound(bound: Any, input: Any, name: str) -> Any:
    """Return a bound as a number in the dtype of the integers it is compared with."""
    is_number = not hasattr(bound, "dtype") and bound is not None
    return factor(bound, input, name) if is_number else bound


def _clamp_value(input: Array, min: Array | Scalar | None, max: Array | Scalar | None) -> Array:
    # As arrays, because NumPy takes twice as long with a Python number and a small array.
    if type(min) is float:
        min = np.array(min, input.dtype)
    if type(max) is float:
        max = np.array(max, input.dtype)
    if min is None:
        return np.minimum(input, max)  # type: ignore[arg-type]  # raises for None
    value: Array = np.maximum(input, min)
    return value if max is None else np.minimum(value, max)


@op(
    "tl tl_ Tensor Tensor_", dtypes="divide", aliases=("clip",), reads_per_operand=False, value=_clamp_value,
    limit=BOUNDS,
    batched="elementwise",
)  # fmt: skip
def clamp(input: Array, min: Array | Scalar | None = None, max: Array | Scalar | None = None) -> Result:
    """Return min(max(input, `min`), `max`), broadcast; if the bounds cross, the upper one.

    The gradient goes to the input within the bounds, ends included, and to the bound outside of them.
    """
    if min is None and max is None:
        raise ArgumentError("clamp: at least one of 'min' or 'max' must not be None")
    min, max = _bound(min, input, "clamp"), _bound(max, input, "clamp")
    if min is not None and max is not None:
        value = between(input, min, max)
    else:
        value = at_most(input, max) if min is None else at_least(input, min)

    def backward(g: Array) -> tuple[Any, ...]:
        crossed = np.False_ if min is None or max is None else min > max  # CuPy takes no Python bool as a condition

        def by_input() -> Array:
            return masked(g, (True if min is None else input >= min) & (True if max is None else input <= max))

        def by_min() -> Array:
            return masked(g, (input < min) & ~crossed)

        def by_max() -> Array:
            return masked(g, (input > max) | crossed)

        return by_input, by_min, by_max

    return value, backward


clamp.piecewise()


@op("tl tl_ Tensor Tensor_", dtypes="divide", batched="elementwise")
def clamp_min(input: Array, min: Array | Scalar) -> Result:
    """Return max(input, `min`), broadcast."""
    min = _bound(min, input, "clamp_min")
    value = at_least(input, min)
    return value, lambda g: (lambda: masked(g, input >= min), lambda: masked(g, input < min))


clamp_min.piecewise()


@op("tl tl_ Tensor Tensor_", dtypes="divide", batched="elementwise")
def clamp_max(input: Array, max: Array | Scalar) -> Result:
    """Return min(input, `max`), broadcast."""
    max = _bound(max, input, "clamp_max")
    value = at_most(input, max)
    return value, lambda g: (lambda: masked(g, input <= max), lambda: masked(g, input > max))


clamp_max.piecewise()


@op("tl Tensor", dtypes="keep")
def masked_select(input: Array, mask: Index) -> Result:
    """Return the elements where the mask is true, in row-major order, both broadcast.

    Shapes: input and mask broadcast to S -> (N)
    """
    _check_mask("masked_select", mask)
    xp = array_module(input)
    values, mask = xp.broadcast_arrays(input, mask)
    shape = values.shape

    def backward(g: Array) -> tuple[Array]:
        spread = xp.zeros(shape, g.dtype)
        spread[mask] = g
        return (spread,)

    return values[mask], backward


masked_select.linear(lambda x, *, mask: x[mask], unneeded="shape")


@op("tl Tensor Tensor_", dtypes="keep")
def masked_scatter(input: Array, mask: Index, source: Array) -> Result:
    """Return the input with the elements of `source`, in order, at the positions where the mask is true.

    Shapes: input and mask broadcast to S, source any with enough elements -> S

    Raises: ShapeError for a source that is too short.
    """
    _check_mask("masked_scatter", mask)
    xp = array_module(input)
    values, mask = xp.broadcast_arrays(input, mask)
    count = int(mask.sum())
    if source.size < count:
        raise ShapeError(f"masked_scatter: the source has {source.size} elements, the mask needs {count}")
    value = values.copy()
    value[mask] = source.reshape(-1)[:count]
    shape = source.shape

    def by_source(g: Array) -> Array:
        d_source = xp.zeros(shape, g.dtype)
        d_source.reshape(-1)[:count] = xp.broadcast_to(g, mask.shape)[mask]
        return d_source

    return value, lambda g: (lambda: masked(g, ~mask), lambda: by_source(g))


masked_scatter.moves()
