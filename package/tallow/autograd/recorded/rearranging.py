"""Rules of ops that move elements. They are linear: the rule is the op itself, for arrays."""

from __future__ import annotations

from tallow.autograd.recorded.rules import Map, linear, rule
from tallow.autograd.recorded.saved import Gradients, Saved, no_rule
from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.kernels import run
from tallow.ops.axis_index import on_axis, take
from tallow.ops.padding import lengthen
from tallow.ops.strided import as_strided, window_view


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


@rule("clone", "to_dtype", "frac")
def _same(saved: Saved, g: Tensor) -> Gradients:
    return [g]
