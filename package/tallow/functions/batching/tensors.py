"""Tensors with a hidden batch dim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, TallowError, UnsupportedError
from tallow.tape.graph import Node, Output

if TYPE_CHECKING:
    from tallow.functions.batching.level import Level

_new: Any = object.__new__


class BatchError(TallowError, RuntimeError):
    """The elements of a batch under vmap are needed one by one, as `item()` and `bool()` need them."""


class BatchedArray:
    """Stand-in for the array of a batched tensor: the shape and dtype of one element, but no elements.

    Attributes:
        tensor: the tensor with the batch dim, which is its first.
        level: the call of vmap that made the batch.
    """

    __slots__ = ("__weakref__", "dtype", "level", "shape", "tensor")
    base = None

    def __init__(self, tensor: Tensor, level: Level) -> None:
        self.tensor, self.level = tensor, level
        self.shape, self.dtype = tensor.array.shape[1:], tensor.array.dtype

    @property
    def ndim(self) -> int:
        """The number of dims of one element."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of one element of the batch."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of a number in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of one element of the batch in bytes."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of one element in bytes."""
        return self.tensor.array.strides[1:]

    @property
    def flags(self) -> Any:
        """The flags of the whole batch."""
        return self.tensor.array.flags

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _needs_elements(name)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise _needs_elements("numpy()")

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise _needs_elements(function.__name__)

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> NoReturn:
        raise _needs_elements(ufunc.__name__)

    def __int__(self) -> int:
        raise _needs_elements("int()")

    __index__ = __bool__ = __float__ = __len__ = __iter__ = __int__

    def __getitem__(self, index: Any) -> NoReturn:
        raise _needs_elements("indexing an array")


def _needs_elements(what: str) -> BatchError:
    return BatchError(
        f"vmap: {what} needs the elements of the batch one by one, as .item() and control flow by values do",
        hint="use ops, such as tl.where; or call the function in a loop",
    )


class Batched(Tensor):
    """A tensor inside of a function under vmap: one for all elements of the batch. Its history is that of `value`."""

    array: Any

    @property
    def value(self) -> Tensor:
        """The tensor with the batch dim, which is its first."""
        return self.array.tensor

    @property
    def level(self) -> Level:
        """The call of vmap that made the batch."""
        return self.array.level

    @property
    def _requires_grad(self) -> bool:
        return self.value.requires_grad

    @_requires_grad.setter
    def _requires_grad(self, value: bool) -> None:
        self.value.requires_grad_(value)

    @property
    def _node(self) -> Node | Output | None:  # type: ignore[override]
        return self.value._node if self.value.requires_grad else None

    @property
    def _grad(self) -> Tensor | None:  # type: ignore[override]
        grad = self.value.grad
        return None if grad is None else batched(grad, self.level)

    def physical(self) -> Tensor:
        """Return the tensor with the batch dims of all levels, those of outer levels first."""
        return self.value.physical()

    def detach(self) -> Tensor:
        """Return a tensor on the same memory without the history."""
        return batched(self.value.detach(), self.level)

    def detach_(self) -> Tensor:
        """Remove the history of this tensor, which becomes a leaf."""
        self.value.detach_()
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without the history."""
        return batched(self.value.data, self.level)

    @data.setter
    def data(self, value: Tensor) -> None:
        raise UnsupportedError("data of a tensor under vmap cannot be replaced", hint="use copy_")

    def item(self) -> Any:
        """Raise BatchError."""
        raise _needs_elements(".item()")

    def _host(self) -> Any:
        raise _needs_elements(".tolist()")

    def __bool__(self) -> bool:
        raise _needs_elements("bool()")

    def backward(self, *_: Any, **__: Any) -> NoReturn:
        """Raise UnsupportedError, as PyTorch does."""
        raise UnsupportedError("backward() called under vmap", hint="use tl.func.grad in the function")

    def register_hook(self, hook: Any) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError("a hook on a tensor under vmap", hint="register it outside of the function")

    retain_grad = register_post_accumulate_grad_hook = register_hook  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"BatchedTensor(lvl={self.level.depth}, bdim=0, value=\n    {self.value!r}\n)"


def batched(value: Tensor, level: Level) -> Batched:
    """Return the tensor of one element of a batch, whose first dim is the batch dim."""
    result: Batched = _new(Batched)
    result.array = BatchedArray(value, level)
    return result


def holds_tensors(x: Any) -> bool:
    """Return whether an object holds tensors and maps them itself, by the methods that PyTorch's vmap calls.

    TensorDict has those methods: `_add_batch_dim` and `_maybe_remove_batch_dim`, beside `shape` and `permute`.
    """
    return hasattr(x, "_add_batch_dim")


def element_of(value: Any, level: Level) -> Any:
    """Return one element of a tensor, or of an object that holds tensors, whose first dim is the batch dim."""
    return value._add_batch_dim(in_dim=0, vmap_level=level) if holds_tensors(value) else batched(value, level)


def batch_of(element: Any, level: Level, dim: int | None) -> Any:
    """Return the batch of which a result of a function is one element, with the batch dim at `dim`; None for neither.

    Raises: ArgumentError if `dim` is None and the result differs between the elements.
    """
    if holds_tensors(element):
        options = {"vmap_level": level, "batch_size": level.size, "out_dim": dim}
        return element if dim is None else element._maybe_remove_batch_dim("vmap", **options)
    is_batched = isinstance(element, Batched) and element.level is level
    if dim is None and is_batched:
        raise ArgumentError("vmap: out_dims is None for a result that differs between the elements")
    value = element.value if is_batched else element if dim is None else repeated(element, level.size)
    return value if not dim else value.movedim(0, dim)


def in_levels(x: Tensor, levels: Sequence[Level]) -> Tensor:
    """Return a tensor as a batch of these levels, outermost first, which include its own."""
    if not levels:
        return x
    *outer, last = levels
    if isinstance(x, Batched) and x.level is last:
        return batched(in_levels(x.value, outer), last)
    return batched(repeated(in_levels(x, outer), last.size), last)


def in_batches(x: Tensor, levels: Sequence[Level]) -> Tensor:
    """Return a tensor whose first dims are the batch dims of these levels, outermost first, as a batch."""
    for level in levels:
        x = batched(x, level)
    return x


def levels_of(x: Any) -> list[Level]:
    """Return the levels of a tensor, outermost first."""
    return [*levels_of(x.value), x.level] if isinstance(x, Batched) else []


def aligned(level: Level, x: Tensor, rank: int) -> Tensor:
    """Return the value of a batch with `rank` dims after the batch dim, new ones first; another tensor as it is."""
    if not (isinstance(x, Batched) and x.level is level):
        return x
    missing = rank - x.ndim
    return x.value if missing <= 0 else x.value.reshape(level.size, *[1] * missing, *x.shape)


def repeated(x: Tensor, size: int) -> Tensor:
    """Return a tensor as each element of a batch, without a copy."""
    return x.expand(size, *x.shape)


def innermost(args: Any) -> Level | None:
    """Return the innermost level of the batched tensors in nested arguments; None if there are none."""
    found: Level | None = None
    for x in _all(args):
        if (type(x) is BatchedArray or isinstance(x, Batched)) and (found is None or x.level.depth > found.depth):
            found = x.level
    return found


def _all(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, tuple | list):
        for part in x:
            yield from _all(part)
    else:
        yield x


class _Arrays:
    """The backend of BatchedArray: it says where the elements are, and computes nothing."""

    type = "cpu"
    array_type = BatchedArray

    @property
    def module(self) -> Any:
        raise _needs_elements("an array function")

    def device_of(self, array: BatchedArray) -> devices.device:
        return devices.device_of(array.tensor.array)

    def to_host(self, array: BatchedArray) -> NoReturn:
        raise _needs_elements("numpy()")


devices.register_arrays(_Arrays())
