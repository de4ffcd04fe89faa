"""Rules of ops that move elements. They are linear: the rule is the op itself, for arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.autograd.recorded.rules import Map, linear, linear_map, rule
from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import run
from tallow.ops.axis_index import on_axis, part, take
from tallow.ops.joining import cat, stack
from tallow.ops.padding import lengthen
from tallow.ops.strided import as_strided, window_view


@linear("reshape", "view", "ravel", "flatten", "unflatten", "squeeze", "unsqueeze")
def _reshape(saved: Saved) -> Map:
    saved.ignore("from_shape")
    return lambda x: x


@linear("permute")
def _permute(saved: Saved) -> Map:
    order = saved.constant("order")
    saved.ignore("ndim")
    return lambda x: x.transpose(order)


@linear("transpose")
def _transpose(saved: Saved) -> Map:
    if not saved.has("first"):
        return lambda x: x
    first, second = saved.constant("first"), saved.constant("second")
    return lambda x: x.swapaxes(first, second)


@linear("getitem", "take_at")
def _getitem(saved: Saved) -> Map:
    index = saved.constant("index")
    saved.ignore("shape")
    return lambda x: x[index]


@linear("gather")
def _gathered(saved: Saved) -> Map:
    places, dim, shape = (saved.constant(name) for name in ("places", "dim", "shape"))
    return lambda x: take(x.reshape(shape or (1,)), places, dim)


@linear("take")
def _taken(saved: Saved) -> Map:
    index = saved.constant("index")
    saved.ignore("shape")
    return lambda x: x.reshape(-1)[index]


@linear("index_select")
def _index_select(saved: Saved) -> Map:
    if not saved.has("places"):
        return lambda x: x
    index = on_axis(saved.constant("dim"), saved.constant("places"))
    saved.ignore("shape")
    return lambda x: x[index]


@linear("diagonal")
def _diagonal(saved: Saved) -> Map:
    plane = [saved.constant(name) for name in ("offset", "dim1", "dim2")]
    saved.ignore("shape")
    return lambda x: x.diagonal(*plane)


@linear("roll")
def _roll(saved: Saved) -> Map:
    if saved.has("by"):
        by, axes = saved.constant("by")[0], None
    else:
        by, axes = tuple(-n for n in saved.constant("back")), saved.constant("axes")
    return lambda x: array_module(x).roll(x, by, axes)


@linear("flip")
def _flip(saved: Saved) -> Map:
    reverse = saved.constant("reverse")
    return lambda x: x[reverse]


@linear("repeat")
def _repeat(saved: Saved) -> Map:
    interleaved, copies = saved.constant("interleaved"), set(saved.constant("copies"))
    shape = [1 if i in copies else n for i, n in enumerate(interleaved)]
    return lambda x: array_module(x).broadcast_to(x.reshape(shape), interleaved)


@linear("tril", "triu", "scaled_mask")
def _masked(saved: Saved) -> Map:
    saved.ignore("diagonal", "keep", "scale")
    return lambda x: saved.entry(0, x)  # the op is its own adjoint


@linear("pad")
def _pad(saved: Saved) -> Map:
    if saved.has("mode"):
        sides, mode = saved.constant("sides"), saved.constant("mode")
        saved.ignore("spatial")

        def lengthened(x: Array) -> Array:
            for axis, before, after in sides:
                x = lengthen(x, axis, before, after, mode)
            return x

        return lengthened
    inside, outside, shape = saved.constant("inside"), saved.constant("outside"), saved.node.shape
    saved.ignore("input_shape")

    def padded(x: Array) -> Array:
        y = array_module(x).zeros(shape, x.dtype)
        y[outside] = x[inside]
        return y

    return padded


@linear("unfold")
def _unfold(saved: Saved) -> Map:
    patches = saved.constant("patches")
    return lambda x: patches.take(x if x.ndim == 4 else x[None])


@linear("fold")
def _fold(saved: Saved) -> Map:
    patches = saved.constant("patches")
    return lambda x: patches.add(x if x.ndim == 3 else x[None])


@linear("embedding")
def _embedding(saved: Saved) -> Map:
    index, padding = saved.constant("input"), saved.constant("padding_idx")
    if saved.constant("scale_grad_by_freq"):
        raise no_rule(saved.node, "scale_grad_by_freq=True is no gradient")
    saved.ignore("rows", "width")
    return lambda x: x[index] * (1 if padding is None else (index != padding)[..., None])


@linear("masked_select")
def _masked_select(saved: Saved) -> Map:
    mask = saved.constant("mask")
    saved.ignore("shape")
    return lambda x: x[mask]


@linear("as_strided")
def _as_strided(saved: Saved) -> Map:
    windows = [saved.constant(name) for name in ("shape", "steps", "storage_offset")]
    saved.ignore("whole_shape")
    return lambda x: as_strided.function(array_module(x).ascontiguousarray(x), *windows)[0].copy()


@linear("window_view")
def _window_view(saved: Saved) -> Map:
    if not saved.has("dim"):  # the input has no dims
        shape = saved.node.shape
        return lambda x: x.reshape(shape)
    windows = [saved.constant(name) for name in ("dim", "size", "step")]
    saved.ignore("shape", "count")
    return lambda x: window_view.function(x, *windows)[0].copy()


@linear("rotary")
def _rotary(saved: Saved) -> Map:
    tables = [saved.constant(name) for name in ("cos", "sin", "interleaved")]
    return lambda x: run("rotary", x, *tables)


@linear("resample")
def _resample(saved: Saved) -> Map:
    stages = [*zip(saved.constant("axes"), saved.constant("taps"), strict=True)]

    def resampled(x: Array) -> Array:
        for axis, taps in stages:
            x = taps.apply(x, axis)
        return x

    return resampled


# Linear ops of several operands or outputs.


@rule("clone", "expand", "to_dtype", "frac")
def _same(saved: Saved, g: Tensor) -> Gradients:
    return [g]


@rule("cat")
def _cat(saved: Saved, g: Tensor) -> Gradients:
    dim, shapes = saved.constant("dim"), saved.constant("shapes")
    if any(len(shape) != g.ndim for shape in shapes):
        raise no_rule(saved.node, "a tensor without elements is left out")
    return g.split([shape[dim] for shape in shapes], dim)


@rule("stack")
def _stack(saved: Saved, g: Tensor) -> Gradients:
    saved.ignore("count")
    return g.unbind(saved.constant("dim"))


@rule("chunk", "split", "split_with_sizes", "tensor_split")
def _cut(saved: Saved, *gs: Tensor) -> Gradients:
    if saved.has("ranges"):
        return [_at_ranges(saved, gs)]
    return [apply(cat, list(gs), saved.constant("dim"))]


def _at_ranges(saved: Saved, gs: Sequence[Tensor]) -> Tensor:
    """Return the sum of gs, each at its range in zeros."""
    shape, dim, ranges = map(saved.constant, ("input_shape", "dim", "ranges"))

    def placed(g: Tensor, place: tuple[Any, ...]) -> Tensor:
        def put(h: Array) -> Array:
            y = array_module(h).zeros(shape, h.dtype)
            y[place] = h
            return y

        return linear_map(g, put, lambda x: x[place])

    first, *others = (placed(g, part(dim, r.start, r.stop)) for g, r in zip(gs, ranges, strict=True))
    return sum(others, first)


@rule("unbind")
def _unbind(saved: Saved, *gs: Tensor) -> Gradients:
    return [apply(stack, list(gs), saved.constant("dim"))]
