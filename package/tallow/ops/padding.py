"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.devices import array_module
from tallow.dtypes import Scalar, dtype_of
from tallow.errors import ShapeError, UnsupportedError
from tallow.ops.axis_index import part
from tallow.ops.dims import as_ints
from tallow.ops.filling import constant
from tallow.ops.memory_format import standard_order
from tallow.ops.table import Array, Result, op

MODES = ("constant", "reflect", "replicate", "circular")


@op("F", dtypes="keep", batched="itself")
def pad(input: Array, pad: Sequence[int], mode: str = "constant", value: Scalar | None = None) -> Result:
    """Pad dims at their ends, or crop them with negative numbers.

    Args:
        pad: before and after, for the last dim first: (left, right, top, bottom, ...).
        mode: "constant" (`value`, default 0); "reflect" (mirror without repeating the edge); "replicate" (the edge);
            "circular" (wrap around).

    Shapes:  input (..., H, W) -> (..., H + top + bottom, W + left + right)
    Raises:  ShapeError if nothing is left, or there is not enough to reflect or to wrap around once
    """
    sides = _sides(input, pad, mode)
    if mode == "constant":
        padded = _constant(input, sides, 0.0 if value is None else value)
        return padded, lambda g: (_constant(g, [(axis, -before, -after) for axis, before, after in sides], 0.0),)
    if value:
        raise ShapeError(f'pad: mode "{mode}" doesn\'t take a value, got {value}')
    y = _longer(input, sides, mode)
    spatial = input.shape

    def backward(g: Array) -> tuple[Array]:
        for axis, before, after in reversed(sides):
            g = _lengthen_backward(g, axis, spatial[axis], before, after, mode)
        return (g,)

    return standard_order(y), backward


@pad.linear(unneeded="spatial")
def _(x: Array, *, sides: list[tuple[int, int, int]], mode: str = "constant") -> Array:
    return _constant(x, sides, 0.0) if mode == "constant" else _longer(x, sides, mode)


def _sides(input: Array, pad: Sequence[int], mode: str) -> list[tuple[int, int, int]]:
    """Return (negative axis, before, after) for each dim that changes."""
    if mode not in MODES:
        raise UnsupportedError(f"pad: unrecognised padding mode {mode!r}", hint=f"use one of {', '.join(MODES)}")
    pad = as_ints(pad, "pad")
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ShapeError(f"pad: expected two numbers for each of at most {input.ndim} dims, got {pad}")
    if mode != "constant" and input.ndim - len(pad) // 2 not in (1, 2):
        raise UnsupportedError(
            f"pad: Padding size {len(pad)} is not supported for {input.ndim}D input tensor: {mode!r} pads all dims but "
            "one or two"
        )
    sides = [(-1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    for axis, before, after in sides:
        size = input.shape[axis]
        rest = size + min(before, 0) + min(after, 0)
        maximum = {"constant": None, "reflect": size - 1, "replicate": None if size else 0, "circular": rest}[mode]
        if maximum is not None and max(before, after) > maximum:
            raise ShapeError(
                f"pad: padding ({before}, {after}) of dim {axis} is too much for {mode!r} and input "
                f"{tuple(input.shape)}; at most {maximum} on each side"
            )
        if size + min(before, 0) + min(after, 0) < 0 or size + before + after < (mode in ("reflect", "replicate")):
            raise ShapeError(f"pad: padding {pad} leaves nothing of dim {axis} of input {tuple(input.shape)}")
    return [side for side in sides if side[1] or side[2]]


def _constant(input: Array, sides: list[tuple[int, int, int]], value: Scalar) -> Array:
    xp = array_module(input)
    shape = list(input.shape)
    source, target = [slice(None)] * input.ndim, [slice(None)] * input.ndim
    for axis, before, after in sides:
        source[axis] = slice(max(0, -before), shape[axis] - max(0, -after))
        target[axis] = slice(max(0, before), shape[axis] + before + after - max(0, after))
        shape[axis] += before + after
    y = xp.full(shape, constant(value, dtype_of(input), "pad")[()], input.dtype)
    y[tuple(target)] = input[tuple(source)]
    return y


def _cut(axis: int, size: int, before: int, after: int) -> tuple[Any, ...]:
    """Return the slice of a dim of length `size` that negative padding keeps."""
    return part(axis, max(0, -before), size - max(0, -after))


def _longer(x: Array, sides: list[tuple[int, int, int]], mode: str) -> Array:
    for axis, before, after in sides:
        x = _lengthen(x, axis, before, after, mode)
    return x


def _lengthen(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Pad one dim. As in PyTorch, cropped elements may be reflected, but not wrapped around."""
    xp = array_module(x)
    if mode == "circular":
        x = x[_cut(axis, x.shape[axis], before, after)]
    size = x.shape[axis]
    a, b = max(before, 0), max(after, 0)
    if mode == "reflect":
        left, right = (xp.flip(x[part(axis, *ends)], axis) for ends in ((1, a + 1), (size - 1 - b, size - 1)))
    elif mode == "replicate":
        left, right = xp.repeat(x[part(axis, 0, 1)], a, axis), xp.repeat(x[part(axis, size - 1, size)], b, axis)
    else:
        left, right = x[part(axis, size - a, size)], x[part(axis, 0, b)]
    longer = xp.concatenate((left, x, right), axis=axis)
    return longer if mode == "circular" else longer[_cut(axis, longer.shape[axis], before, after)]


def _lengthen_backward(g: Array, axis: int, size: int, before: int, after: int, mode: str) -> Array:
    xp = array_module(g)
    a, b = max(before, 0), max(after, 0)
    if mode == "circular":
        cropped_size = size + min(before, 0) + min(after, 0)
        d = _with_zeros(g[part(axis, a, a + cropped_size)], axis, size, before, after)
        inside = d[_cut(axis, size, before, after)]
        inside[part(axis, cropped_size - a, cropped_size)] += g[part(axis, 0, a)]
        inside[part(axis, 0, b)] += g[part(axis, a + cropped_size, None)]
        return d
    g = _with_zeros(g, axis, size + a + b, before, after)
    d = g[part(axis, a, a + size)].copy()
    left, right = g[part(axis, 0, a)], g[part(axis, a + size, None)]
    if mode == "reflect":
        d[part(axis, 1, a + 1)] += xp.flip(left, axis)
        d[part(axis, size - 1 - b, size - 1)] += xp.flip(right, axis)
    else:
        d[part(axis, 0, 1)] += left.sum(axis=axis, keepdims=True)
        d[part(axis, size - 1, size)] += right.sum(axis=axis, keepdims=True)
    return d


def _with_zeros(g: Array, axis: int, size: int, before: int, after: int) -> Array:
    """Copy g into a dim of length `size`, with zeros where negative padding cropped it."""
    shape = list(g.shape)
    shape[axis] = size
    result = array_module(g).zeros(shape, g.dtype)
    result[_cut(axis, size, before, after)] = g
    return result
