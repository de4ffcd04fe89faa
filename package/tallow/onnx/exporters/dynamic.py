"""The sizes that may vary: what `dynamic_shapes` and `dynamic_axes` of torch.onnx.export say, for `tl.export`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.export.capture import STARS, bound_arguments, by_leaf, filled
from tallow.export.dims import Dim, entries_of, resized
from tallow.export.trees import Spec, flatten, unflatten
from tallow.nn.module import Module

Axes = dict[str, dict[int, str]]


def names_of_axes(dynamic_axes: Mapping[str, Any] | None) -> Axes:
    """Return name of an input or output -> dim -> name of its size, with names where a list of dims was given."""
    axes: Axes = {}
    for name, entry in (dynamic_axes or {}).items():
        if isinstance(entry, Mapping):
            axes[name] = {int(dim): str(axis) for dim, axis in entry.items()}
        else:
            size = re.sub(r"\W|^(?=\d)", "_", name)  # names of sizes are those of Python: input.1 -> input_1
            axes[name] = {int(dim): f"{size}_dynamic_axes_{i + 1}" for i, dim in enumerate(entry)}
    return axes


def places_of(axes: Axes, name: str, rank: int) -> dict[int, str]:
    """Return the names of the sizes of one input or output, by dims from 0 on.  Raises: ArgumentError"""
    given = axes.get(name, {})
    if wrong := [dim for dim in given if not -rank <= dim < rank]:
        raise ArgumentError(f"onnx.export: dynamic_axes: {name!r:.80} has no dim {wrong[0]}; it has {rank}")
    return {dim % rank: axis for dim, axis in given.items()}


class _Arguments:
    """The arguments of a call, flat."""

    def __init__(self, model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.bound = bound_arguments(model, args, kwargs)
        self.leaves: list[tuple[str, Any]] = []
        self.specs: dict[str, Spec] = {
            STARS.get(self.bound.signature.parameters[name].kind, "") + name: flatten(
                value, name, self.leaves, "argument"
            )
            for name, value in self.bound.arguments.items()
        }


def declared(
    model: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    axes: Axes,
    input_names: Sequence[str] | None,
) -> Any:
    """Return `dynamic_shapes` for `tl.export.export`, in which names are Dims, or what `dynamic_axes` says.

    Raises:  ArgumentError for a dim in `dynamic_axes` that an input does not have
    """
    dims: dict[str, Dim] = {}
    arguments = _Arguments(model, args, kwargs)
    if dynamic_shapes is not None:
        shapes = _named(dynamic_shapes, dims)
        return {"args": shapes} if _is_by_argument(shapes, arguments, args) else shapes
    tensors = [i for i, (_, leaf) in enumerate(arguments.leaves) if isinstance(leaf, Tensor)]
    entries: list[Any] = [None] * len(arguments.leaves)
    for place, index in enumerate(tensors):
        path = arguments.leaves[index][0]
        name = input_names[place] if input_names is not None and place < len(input_names) else path
        found = places_of(axes, name, arguments.leaves[index][1].ndim)
        entries[index] = {dim: _dim(axis, dims) for dim, axis in found.items()} or None
    if not any(entries):
        return None
    return {name.lstrip("*"): unflatten(spec, entries.__getitem__) for name, spec in arguments.specs.items()}


def _is_by_argument(shapes: Any, arguments: _Arguments, args: tuple[Any, ...]) -> bool:
    """Return whether there is an entry for each of `*args`, as if they had names of their own."""
    names = list(arguments.specs)
    if names != ["*args"] or not isinstance(shapes, list | tuple) or len(shapes) != len(args):
        return False
    return all(x is None or (isinstance(x, dict) and all(isinstance(d, Dim) for d in x.values())) for x in shapes)


def _dim(name: str, dims: dict[str, Dim]) -> Dim:
    if name not in dims:
        if not name.isidentifier():
            raise ArgumentError(f"onnx.export: {name!r:.80} is no name of a size", hint="use letters, digits and _")
        dims[name] = Dim(name)
    return dims[name]


def _named(shapes: Any, dims: dict[str, Dim]) -> Any:
    """Return what is declared with a Dim in place of each name."""
    if isinstance(shapes, str):
        return _dim(shapes, dims)
    if isinstance(shapes, Mapping):
        return {key: _named(x, dims) for key, x in shapes.items()}
    return type(shapes)(_named(x, dims) for x in shapes) if isinstance(shapes, list | tuple) else shapes


def enlarged(
    model: Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example with at least 2 elements along each dim that varies.

    An example with a batch of 1 is usual for torch.onnx.export; a size of 1 broadcasts, so it cannot stand for others.
    """
    if shapes is None:
        return args, kwargs
    arguments = _Arguments(model, args, kwargs)
    leaves = [leaf for _, leaf in arguments.leaves]
    for i, entry in enumerate(by_leaf(arguments.specs, shapes, len(leaves))):
        if not isinstance(leaves[i], Tensor) or entry is None:
            continue
        names: list[str | None] = [None] * leaves[i].ndim
        for dim, each in entries_of(arguments.leaves[i][0], entry, leaves[i].ndim):
            is_single = isinstance(each, Dim) and each is not Dim.STATIC and leaves[i].array.shape[dim] == 1
            names[dim] = str(dim) if is_single else None
        if any(names):
            grown = resized(leaves[i], tuple(names), {name: 2 for name in names if name is not None})
            leaves[i] = grown.requires_grad_(leaves[i].requires_grad)
    bound = filled(arguments.bound, arguments.specs, leaves)
    return bound.args, bound.kwargs
