"""Functions that change shapes, composed of the views in `tallow.ops.shape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow import devices, dtypes
from tallow.core.apply import apply
from tallow.core.creation import arange, given_once
from tallow.core.overrides import overridable
from tallow.core.public_api import public
from tallow.core.size import Size
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.devices import array_module
from tallow.errors import ArgumentError, ArgumentTypeError, DimensionError, ShapeError
from tallow.functions.complex_numbers import conj
from tallow.functions.storage import UntypedStorage
from tallow.functions.typed_storage import TypedStorage
from tallow.ops import shape as ops
from tallow.ops.axis_index import on_axis, part
from tallow.ops.diagonals import diag_embed
from tallow.ops.diagonals import diagonal as diagonal_of
from tallow.ops.dims import as_int, as_ints, normalize_dim, normalize_dims
from tallow.ops.indexing import getitem
from tallow.ops.rearranging import flip, interleaved_places, repeat
from tallow.ops.strided import as_strided as strided_view
from tallow.ops.strided import window_view
from tallow.ops.table import Op
from tallow.tape.graph import check_inplace
from tallow.tape.modes import mode
from tallow.tape.views import reshaped


@public("Tensor")
def view(input: Tensor, *sizes: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """Return the same memory in another shape, view(size), or as another dtype, view(dtype).

    Raises: ShapeError if the strides, or for a dtype of another width the last dim, do not allow it.
    """
    if len(sizes) == 1 and isinstance(sizes[0], dtypes.dtype):
        (dtype,) = sizes
    if dtype is None:
        return ops.view.call(input, *(sizes if size is None else (size,)))
    array, storage = input.array, dtypes.as_dtype(dtype).storage
    try:
        return wrap(array.viewed(lambda x: x.view(storage)) if input.is_meta else array.view(storage))
    except ValueError as error:
        raise ShapeError(f"view: {list(input.shape)} of {input.dtype} cannot be read as {dtype}: {error}") from error


@public("Tensor")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view with the shape of `other`."""
    return apply(ops.view, input, other.shape)


@public("Tensor")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshape to the shape of `other`."""
    return apply(ops.reshape, input, other.shape)


@public("Tensor")
def sum_to_size(input: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Sum over the dims along which a tensor of that size would be broadcast to the size of this one.

    Dtypes:  the input's where no dim is summed; else that of `sum`, and so for a size without dims
    Raises:  ShapeError if it would not be
    """
    sizes = given_once(sizes, size, "sum_to_size")
    target = as_ints(sizes[0] if len(sizes) == 1 else sizes, "sum_to_size")
    lead = input.ndim - len(target)
    if lead < 0 or any(n not in (1, m) for n, m in zip(target, input.shape[lead:], strict=True)):
        raise ShapeError(f"sum_to_size: {list(target)} is not expandable to {list(input.shape)}")
    shrunk = [lead + i for i, n in enumerate(target) if n == 1 and input.shape[lead + i] != 1]
    summed = input.sum((*range(lead), *shrunk), keepdim=True) if lead or shrunk or not target else input
    return summed.reshape(target)


@public("Tensor")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view, expanded to the shape of `other`."""
    return apply(ops.expand, input, other.shape)


@public("tl Tensor")
def t(input: Tensor) -> Tensor:
    """Transpose a matrix; return vectors and 0-d tensors unchanged.

    Raises: ShapeError for more than two dims.
    """
    if input.ndim > 2:
        raise ShapeError(f"t: expects a tensor with at most 2 dimensions, got {input.ndim}", hint="use .mT")
    return apply(ops.transpose, input, 0, -1)


@public("tl Tensor")
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a view of `length` elements along `dim` from `start` on.

    Raises: DimensionError for a start, ShapeError for a length that reaches beyond the end.
    """
    if not input.ndim:
        raise ShapeError("narrow: cannot be applied to a 0-dim tensor")
    if isinstance(start, Tensor) and (start.ndim or start.dtype.storage.kind not in "iu"):
        raise ArgumentError(
            f"narrow: start must be an 0-dim integral Tensor, got {start.dtype} of {tuple(start.shape)}"
        )
    dim = normalize_dim(dim, input.ndim, "narrow")
    first, length, size = as_int(start, "narrow"), as_int(length, "narrow"), input.shape[dim]
    if length < 0:
        raise ShapeError(f"narrow: length must be non-negative, got {length}")
    if not -size <= first <= size:
        raise DimensionError(f"narrow: start {first} is out of range for dimension {dim} of size {size}")
    first += size if first < 0 else 0
    if first + length > size:
        raise ShapeError(f"narrow: start {first} + length {length} exceeds dimension size {size}")
    return apply(getitem, input, part(dim, first, first + length))


@public("tl Tensor")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of the slice at one index along `dim`, without that dim."""
    if not input.ndim:
        raise DimensionError("select: cannot be applied to a 0-dim tensor")
    dim = normalize_dim(dim, input.ndim, "select")
    index, size = as_int(index, "select"), input.shape[dim]
    if not -size <= index < size:
        raise DimensionError(f"select: index {index} is out of range for dimension {dim} of size {size}")
    return apply(getitem, input, (*on_axis(dim, index), ...))


@public("tl Tensor", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move dims to new positions; the others keep their order."""
    pairs = [as_ints(dims, "movedim") for dims in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        raise ShapeError(f"movedim: {len(pairs[0])} source dims and {len(pairs[1])} destination dims; expected as many")
    taken, placed = (normalize_dims(dims, input.ndim, "movedim") if dims else () for dims in pairs)
    order = [d for d in range(input.ndim) if d not in taken]
    for position, d in sorted(zip(placed, taken, strict=True)):
        order.insert(position, d)
    return apply(ops.permute, input, tuple(order[: input.ndim]))


@public("Tensor")
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of `size` elements along a dim, `step` apart, as a new last dim."""
    return apply(window_view, input, dimension, size, step)


@public("tl Tensor")
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view of the tensor's memory with explicit strides, in elements.

    Raises: ShapeError if they reach beyond the storage, or it is not in row-major order.
    """
    storage = input if input._base is None else input._base
    if storage_offset is not None and input._base is None and not input.is_meta and input.storage_offset():
        return _of_memory(input, tuple(size), tuple(stride), storage_offset)
    if storage_offset is None and input.is_meta:
        storage_offset = input.storage_offset() - storage.storage_offset()
    elif storage_offset is None:
        storage_offset = (input.data_ptr() - storage.data_ptr()) // input.itemsize
    return apply(strided_view, storage, tuple(size), tuple(stride), storage_offset)


def _of_memory(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor:
    """Return `as_strided` of a tensor that is no view, but whose memory begins before its first element."""
    memory = TypedStorage(wrap_storage=UntypedStorage.over(input.array), dtype=input.dtype).tensor()
    if not input.requires_grad:
        return apply(strided_view, memory, size, stride, offset)
    places = arange(memory.numel(), device=input.device).as_strided(input.shape, input.stride(), input.storage_offset())
    return apply(strided_view, memory.scatter(0, places.reshape(-1), input.reshape(-1)), size, stride, offset)


@public("tl", name="tile")
def _tiled(input: Tensor, dims: Sequence[int]) -> Tensor:
    """Repeat as `repeat` does; with fewer repeats than dims, the first dims are not repeated."""
    return tile(input, _as_listed(dims, "tile"))


@public("Tensor")
def tile(input: Tensor, *repeats: Any, dims: Any = None) -> Tensor:
    """Repeat as `repeat` does; with fewer repeats than dims, the first dims are not repeated."""
    repeats = given_once(repeats, dims, "tile", "dims")
    counts = as_ints(repeats[0] if len(repeats) == 1 else repeats, "tile")
    return apply(repeat, input, (1,) * (input.ndim - len(counts)) + counts)


@public("tl Tensor")
@recorded_whole
@devices.guarded
def repeat_interleave(
    input: Tensor | None = None,
    repeats: Tensor | int | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Repeat each slice along `dim` several times in a row; without `dim`, each element of the flattened tensor.

    repeat_interleave(repeats) alone gives the places: 0 repeats[0] times, 1 repeats[1] times, ...

    Args:
        repeats: one number for all, or one for each place.
    """
    if input is None or repeats is None:
        only = input if repeats is None else repeats
        if not isinstance(only, Tensor):
            raise ArgumentTypeError(f"repeat_interleave: expected a Tensor of repeats, got {only!r:.50}")
        if only.ndim != 1:
            raise ShapeError(f"repeat_interleave: repeats must be 1-dim, got {only.ndim} dims")
        return wrap(interleaved_places(only.array, only.numel(), array_module(only.array)))
    if dim is None:
        input, dim = input.flatten(), 0
    dim = normalize_dim(dim, input.ndim, "repeat_interleave")
    size = input.array.shape[dim] if input.ndim else 1
    counts = repeats.array if isinstance(repeats, Tensor) else repeats
    places = interleaved_places(counts, size, array_module(input.physical().array))
    if output_size is not None and output_size != places.size:
        raise ShapeError(f"repeat_interleave: the repeats sum to {places.size}, not to output_size {output_size}")
    return input.index_select(dim, wrap(places))


@public("tl Tensor")
def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the columns."""
    if input.ndim < 2:
        raise ShapeError(f"fliplr: input must be >= 2-d, got {input.ndim} dims")
    return apply(flip, input, (1,))


@public("tl Tensor")
def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the rows."""
    if input.ndim < 1:
        raise ShapeError("flipud: input must be >= 1-d, got 0 dims")
    return apply(flip, input, (0,))


@public("tl Tensor", checked=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy rotated by `k` times 90°, from the first of `dims` towards the second."""
    if len(dims) != 2 or input.ndim < 2:
        raise ShapeError(f"rot90: expected two rotation dims and a tensor of at least two, got {dims} and {input.ndim}")
    a, b = (normalize_dim(d, input.ndim, "rot90") for d in dims)
    if a == b:
        raise ShapeError(f"rot90: expected rotation dims to be different, got {dims}")
    if k % 4 == 1:
        return apply(flip, input, (b,)).transpose(a, b)
    if k % 4 == 3:
        return apply(flip, input, (a,)).transpose(a, b)
    return apply(flip, input, (a, b)) if k % 4 else input.clone()


@public("tl Tensor")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a matrix with a vector as its diagonal, or a copy of the diagonal of a matrix."""
    if input.ndim == 1:
        return apply(diag_embed, input, diagonal)
    if input.ndim == 2:
        return apply(diagonal_of, input, diagonal).clone()
    raise ShapeError(f"diag: supports 1D or 2D tensors, got {input.ndim} dims")


@public("tl Tensor")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with the flattened elements as its diagonal."""
    return apply(diag_embed, input.flatten(), offset)


@public("tl")
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape that tensors of these shapes broadcast to.

    Raises: ShapeError if they do not fit, or a size is negative.
    """
    all_sizes = [
        as_ints(shape if isinstance(shape, tuple | list) else (shape,), "broadcast_shapes") for shape in shapes
    ]
    rank = max(map(len, all_sizes), default=0)
    common = [1] * rank
    for sizes in all_sizes:
        for dim, size in enumerate(sizes, rank - len(sizes)):
            if size < 0:
                raise ShapeError(f"broadcast_shapes: the sizes of {sizes} must not be negative")
            if common[dim] != size and size != 1:
                if common[dim] != 1:
                    raise ShapeError(f"broadcast_shapes: the shapes {shapes} do not broadcast with each other")
                common[dim] = size
    return Size(common)


def _as_listed(sizes: Any, name: str) -> Any:
    """Return integers that a function, other than a method, takes as one argument.  Raises: ArgumentTypeError"""
    if not isinstance(sizes, tuple | list):
        raise ArgumentTypeError(f"{name}: expected a tuple of ints, not {type(sizes).__name__}")
    return sizes


@public("tl", name="broadcast_to")
def _broadcast(input: Tensor, size: Sequence[int]) -> Tensor:
    """Return a view, expanded to a size; see `expand`."""
    return broadcast_to(input, _as_listed(size, "broadcast_to"))


@public("Tensor")
def broadcast_to(input: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Return a view, expanded to a size; see `expand`."""
    return apply(ops.expand, input, *given_once(sizes, size, "broadcast_to"))


@public("tl")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return views of the tensors, expanded to their common shape."""
    sources = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    shape = broadcast_shapes(*(t.shape for t in sources))
    return tuple(apply(ops.expand, t, shape) for t in sources)


@public("tl")
@overridable
def atleast_1d(*tensors: Any) -> Any:
    """Return 0-d tensors as vectors of one element; others unchanged."""
    return _each(tensors, lambda t: t.reshape(1) if not t.ndim else t)


@public("tl")
@overridable
def atleast_2d(*tensors: Any) -> Any:
    """Return vectors as one row; others unchanged."""
    return _each(tensors, lambda t: t.reshape(1, -1) if t.ndim < 2 else t)


@public("tl")
@overridable
def atleast_3d(*tensors: Any) -> Any:
    """Return vectors as (1, N, 1), matrices as (N, M, 1); others unchanged."""
    return _each(tensors, lambda t: t.reshape(1, -1, 1) if t.ndim < 2 else t.unsqueeze(-1) if t.ndim == 2 else t)


def _each(tensors: tuple[Any, ...], change: Callable[[Tensor], Tensor]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return change(tensors[0])
    sources = tensors[0] if len(tensors) == 1 else tensors
    return tuple(map(change, sources))


@public("Tensor_")
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """Insert a dim of size 1 in place."""
    return _reshape_itself(input, apply(ops.unsqueeze, input, dim), "unsqueeze_", ops.reshape, tuple(input.shape))


@public("Tensor_")
def squeeze_(input: Tensor, dim: Any = None) -> Tensor:
    """Remove dims of size 1 in place."""
    return _reshape_itself(input, apply(ops.squeeze, input, dim), "squeeze_", ops.reshape, tuple(input.shape))


@public("Tensor_", "swapaxes_", "swapdims_")
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dims in place."""
    return _reshape_itself(input, apply(ops.transpose, input, dim0, dim1), "transpose_", ops.transpose, dim0, dim1)


@public("Tensor_")
def t_(input: Tensor) -> Tensor:
    """Transpose a matrix in place."""
    return _reshape_itself(input, t(input), "t_", ops.transpose, 0, -1)


def _reshape_itself(input: Tensor, view: Tensor, name: str, undo: Op, *rest: Any) -> Tensor:
    """Turn a tensor into a view of itself, with the history of that view.

    Args:
        undo, rest: the op, and its arguments after the tensor, that returns a view in the former shape.

    Raises: GraphError as any write in place, of a leaf that requires grad or a view of one
    """
    if input.requires_grad and mode.recording:
        check_inplace(input, name)
        input._node = view._node
    input._view = reshaped(input._view, (undo.function, rest, {}, None)) if input._base is None else view._view
    input.array = view.array
    if input._retained is not None:
        input._keep_grad()
    return input


def _reversed(input: Tensor) -> Tensor:
    """Return a view with all dims reversed."""
    reversed_view: Tensor = ops.permute.call(input, tuple(range(input.ndim - 1, -1, -1)))
    return reversed_view


@public("tl Tensor")
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices: of real ones a view with the last two dims exchanged.

    A tensor without dims stays as it is, as in PyTorch.
    """
    if not input.ndim:
        return input
    if input.ndim < 2:
        raise ShapeError(f"mT: only supported on matrices or batches of matrices, got a tensor of {input.ndim} dims")
    return conj(apply(ops.transpose, input, -2, -1))


def _transposed(input: Tensor) -> Tensor:
    """Return a view with the last two dims exchanged."""
    if input.ndim == 1:
        raise ShapeError("mT: only supported on matrices or batches of matrices, got a tensor of 1 dims")
    return apply(ops.transpose, input, -2, -1) if input.ndim else input


def _conjugate_transposed(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix."""
    return conj(t(input))


for _name, _getter in {"T": _reversed, "mT": _transposed, "H": _conjugate_transposed, "mH": adjoint}.items():
    setattr(Tensor, _name, property(_getter))
