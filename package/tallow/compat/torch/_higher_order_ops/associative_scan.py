"""torch._higher_order_ops.associative_scan: running results of a function of two slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tallow import flip, stack
from tallow.compat.torch.utils._pytree import tree_flatten, tree_unflatten
from tallow.errors import ArgumentError


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: Literal["pointwise", "generic"] = "pointwise",
) -> Any:
    """Return the running results of an associative function over the slices of tensors along a dimension.

    Slice i of the result is `combine_fn(slice i - 1 of the result, slice i of xs)`; slice 0 is that of `xs`. Slices are
    combined one after the other, so rounding differs from PyTorch's compiled tree.

    Args:
        combine_fn: takes two trees of slices and returns one with the same structure, shapes and dtypes.
        xs: a tensor, or a tree of tensors with one length along `dim`.
        reverse: start at the last slice.
        combine_mode: how PyTorch compiles the function; both give the same numbers.

    Raises:  ArgumentError if `xs` has no tensors, of different lengths or empty along `dim`, or if `combine_fn` returns
        another number of tensors
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ArgumentError(f"combine_mode must be 'pointwise' or 'generic', not {combine_mode!r}")
    leaves, structure = tree_flatten(xs)
    lengths = {leaf.shape[dim] for leaf in leaves}
    if len(lengths) != 1 or lengths == {0}:
        raise ArgumentError(f"xs must have tensors of one length, above 0, along dim {dim}; lengths: {sorted(lengths)}")
    if reverse:
        leaves = [flip(leaf, [dim]) for leaf in leaves]
    slices = [list(rows) for rows in zip(*(leaf.unbind(dim) for leaf in leaves), strict=True)]
    results = [slices[0]]
    for row in slices[1:]:
        combined, _ = tree_flatten(combine_fn(*(tree_unflatten(part, structure) for part in (results[-1], row))))
        if len(combined) != len(row):
            raise ArgumentError(f"combine_fn returned {len(combined)} tensors for {len(row)}")
        results.append(combined)
    stacked = [stack(list(rows), dim) for rows in zip(*results, strict=True)]
    return tree_unflatten([flip(leaf, [dim]) for leaf in stacked] if reverse else stacked, structure)
