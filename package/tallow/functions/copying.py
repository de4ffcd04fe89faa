"""Functions that return new memory where others return a view, and views of which autograd keeps no account.

Tensors here may share memory without harm, so that `unsafe_split` and the others are the safe ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.overrides import overridable
from tallow.core.public_api import PUBLIC, public
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.functions import shape
from tallow.ops import joining


@public("tl Tensor")
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a copy of `length` elements along `dim` from `start` on; see `narrow`."""
    if type(dim) is int and dim >= input.ndim:
        raise ShapeError(f"narrow_copy: dim {dim} is out of range for {input.ndim} dims")
    return shape.narrow(input, dim, start, length).clone()


@public("tl Tensor")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return what `chunk` does."""
    return apply(joining.chunk, input, chunks, dim)


@public("tl Tensor")
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return what `split` does."""
    return apply(joining.split, tensor, split_size, dim)


@public("tl Tensor")
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return what `split_with_sizes` does."""
    return apply(joining.split_with_sizes, input, split_sizes, dim)


@public("tl Tensor")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a copy of the input in which `src` replaces the elements of `as_strided(size, stride, storage_offset)`."""
    places = shape.as_strided(arange(input.numel(), device=input.device), size, stride, storage_offset)
    return input.reshape(-1).scatter(0, places.reshape(-1), src.reshape(-1)).reshape(input.shape)


def _copy_of(view: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(view)  # for its signature
    def copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        value = view(input, *args, **kwargs)
        return value.clone() if isinstance(value, Tensor) else tuple(part.clone() for part in value)

    copy.__name__ = copy.__qualname__ = name + "_copy"
    copy.__doc__ = f"Return what `{name}` does, in new memory."
    return overridable(copy)


VIEWS = (
    "alias as_strided ccol_indices col_indices crow_indices detach diagonal expand indices permute row_indices select "
    "slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze values view view_as_complex view_as_real"
)


def _alias(input: Tensor) -> Tensor:
    return input.view(input.shape)


def _detach(input: Tensor) -> Tensor:
    return input.detach()


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return input[(slice(None),) * (dim % input.ndim) + (slice(start, end, step),)]


def __getattr__(name: str) -> Any:
    own = {"alias": _alias, "detach": _detach, "slice": _slice}
    view = name.removesuffix("_copy")
    if view == name or view not in VIEWS.split():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _copy_of(own.get(view) or getattr(Tensor, view, None) or PUBLIC["tl"][view], view)
