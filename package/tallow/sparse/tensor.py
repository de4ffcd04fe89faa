"""SparseTensor: the entries of a tensor and their places, in the layouts of PyTorch.

The entries are a dense tensor, which has the history: ops on a sparse tensor are ops on its entries, and its gradient
is theirs. There is no dense array. What reads one raises, the function that was called then asks the sparse tensor
(`tallow.core.overrides`), and that calls its own function of the same name: one that `implements` has filed here. There
is none for most functions of dense tensors, and those raise by name.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NoReturn, TypeVar

from tallow import dtypes
from tallow.core.size import Size, new_size
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, ShapeError, UnsupportedError
from tallow.ops.dims import normalize_dim
from tallow.ops.memory_format import layout as Layout
from tallow.ops.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from tallow.ops.sparse import RowGradient
from tallow.tape.graph import check_inplace
from tallow.tape.modes import mode

F = TypeVar("F", bound=Callable[..., Any])
ROWS = (sparse_csr, sparse_bsr)  # the layouts whose rows are compressed
BLOCKS = (sparse_bsr, sparse_bsc)  # the layouts whose entries are blocks
TITLES = {
    sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr",
    sparse_bsc: "SparseBsc",
}  # fmt: skip


class LayoutError(UnsupportedError):
    """An op that does not know sparse tensors has got one."""

    def __init__(self, name: str, layout: Layout) -> None:
        super().__init__(f"{name} is not implemented for layout {layout!r}", hint="use to_dense()")


class NotDense:
    """Stands where a dense tensor has its array. Whatever reads it raises LayoutError."""

    __slots__ = ("_layout", "_of")
    __array_ufunc__ = None

    def __init__(self, of: SparseTensor) -> None:
        self._of, self._layout = of, of._kind

    def __getattr__(self, name: str) -> NoReturn:
        raise LayoutError(sys._getframe(1).f_code.co_name, self._layout)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise LayoutError("array", self._layout)

    def __bool__(self) -> NoReturn:
        raise LayoutError("bool", self._layout)


class SparseTensor(Tensor):
    """A tensor in a sparse layout; see `sparse_coo_tensor` and `sparse_compressed_tensor`, which make them.

    Attributes:
        places: of the COO layout the indices (sparse dims, entries); else the compressed and the plain indices.
        entries: the values, with their history.
        shape_: the sizes of all dims.
        is_merged: each place occurs once, in order; known of the COO layout.
    """

    places: tuple[Tensor, ...]
    entries: Tensor
    shape_: tuple[int, ...]
    is_merged: bool
    _kind: Layout
    _rows: Any = None  # the compressed rows, once they were needed

    @property
    def array(self) -> Any:
        """An object in the place of an array: it raises. Assigning that of another tensor takes its parts."""
        return NotDense(self)

    @array.setter
    def array(self, value: Any) -> None:
        if not isinstance(value, NotDense):
            raise LayoutError("a dense array", self._kind)
        self.become(value._of)

    def _host(self) -> NoReturn:
        raise LayoutError(sys._getframe(1).f_code.co_name, self._kind)

    # ------------------------------------------------------------------------------------- what describes the tensor

    shape = property(lambda self: new_size(Size, self.shape_))
    ndim = property(lambda self: len(self.shape_))
    dtype = property(lambda self: self.entries.dtype)
    layout = property(lambda self: self._kind)
    device = property(lambda self: self.entries.device)
    itemsize = property(lambda self: self.entries.itemsize)
    is_cuda = property(lambda self: self.entries.is_cuda)
    is_cpu = property(lambda self: self.entries.is_cpu)
    is_meta = property(lambda self: self.entries.is_meta)
    is_sparse = property(lambda self: self._kind is sparse_coo)
    is_sparse_csr = property(lambda self: self._kind is sparse_csr)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dim."""
        return self.shape if dim is None else self.shape_[normalize_dim(dim, self.ndim, "size")]

    def dim(self) -> int:
        """Return the number of dims."""
        return len(self.shape_)

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements, with those that are not stored."""
        return self.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        """Return the size of an element in bytes."""
        return self.entries.element_size()

    def is_complex(self) -> bool:
        """Return whether the dtype is a complex dtype."""
        return self.entries.is_complex()

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:
        """Return False: there is no dense memory."""
        return False

    def __len__(self) -> int:
        if not self.shape_:
            raise ArgumentTypeError("len() of a 0-d tensor")
        return self.shape_[0]

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Raise ArgumentTypeError: a sparse tensor has no array."""
        title = TITLES[self._kind]
        raise ArgumentTypeError(
            f"can't convert {title} layout tensor to numpy. Use Tensor.to_dense() first.", hint="x.to_dense().numpy()"
        )

    def __format__(self, spec: str) -> str:
        if spec:
            raise ArgumentTypeError(f"format {spec!r} is for 0-d tensors", hint="use str(x)")
        return repr(self)

    # -------------------------------------------------------------------------------------------------------- copies

    def like(self, entries: Tensor, is_merged: bool | None = None) -> SparseTensor:
        """Return a tensor with other entries at the same places."""
        merged = self.is_merged if is_merged is None else is_merged
        result = make(self._kind, self.places, entries, self.shape_, merged)
        result._rows = self._rows
        return result

    def detach(self) -> SparseTensor:
        """Return a tensor on the same entries without the history."""
        return self.like(self.entries.detach())

    def detach_(self) -> SparseTensor:
        """Remove the history of the entries."""
        self.entries.detach_()
        return self

    @property
    def data(self) -> Any:
        """The same entries without the history."""
        return self.like(self.entries.data)

    @data.setter
    def data(self, value: Any) -> None:
        self.become(value)

    def become(self, other: SparseTensor) -> SparseTensor:
        """Take the layout, the places and the entries of another tensor. A leaf stays one that requires grad."""
        is_leaf = self.is_leaf and self.requires_grad
        for name in ("_kind", "places", "entries", "shape_", "is_merged", "_rows"):
            setattr(self, name, getattr(other, name))
        if is_leaf:
            self.entries = self.entries.detach().requires_grad_()
        return self

    def overwrite(self, name: str, other: SparseTensor) -> SparseTensor:
        """Take what a function in place has computed: into the memory of the entries if the places stay.

        Raises: DtypeError if the entries cannot have the dtype, GraphError for a leaf that requires grad
        """
        check_inplace(self.entries, name, mode.recording)
        if not dtypes.can_cast(other.dtype, self.dtype):
            raise DtypeError(f"{name}: result type {other.dtype} can't be cast to the desired output type {self.dtype}")
        if shares_places(self, other) and not other.requires_grad:
            self.entries.copy_(other.entries)  # what shares the memory, as `detach` does, sees it
            return self
        return self.become(other.like(other.entries.to(self.dtype)))

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if self.grad_fn is not None:
            raise GraphError("only leaf tensors can be deep-copied", hint="use tensor.detach().clone()")
        result = memo[id(self)] = self.like(copy.deepcopy(self.entries, memo))
        return result

    def __copy__(self) -> SparseTensor:
        return self.like(copy.copy(self.entries))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return make, (self._kind, self.places, self.entries, self.shape_, self.is_merged)

    # ------------------------------------------------------------------------------------------------------ autograd

    # What the engine asks a tensor for. Its gradient arrives at the entries.
    _base = property(lambda self: self.entries._base)
    _requires_grad = property(lambda self: self.entries._requires_grad)
    _inference = property(lambda self: self.entries._inference)
    requires_grad = property(
        lambda self: self.entries.requires_grad, lambda self, value: self.entries.requires_grad_(value)
    )
    is_leaf = property(lambda self: self.entries.is_leaf)
    grad_fn = property(lambda self: self.entries.grad_fn)
    retains_grad = property(lambda self: self.entries.retains_grad)
    _version = property(lambda self: self.entries._version)

    @property
    def _node(self) -> Any:  # type: ignore[override]
        """The edge to the entries, also of a leaf."""
        return (self.entries._node or self.entries) if self.entries._requires_grad else None

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Set whether autograd records ops on the entries of this leaf."""
        self.entries.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Store the gradient in `.grad` although the tensor is not a leaf."""
        self.entries.retain_grad()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook` with the sparse gradient whenever it is computed. A tensor it returns replaces it."""

        def on_entries(g: Tensor) -> Tensor | None:
            replaced: Any = hook(self._of_gradient(g))
            return None if replaced is None else replaced.entries

        return self.entries.register_hook(on_entries)

    @property
    def grad(self) -> Any:
        """The gradient at the places of the entries; None before the first."""
        return None if self.entries.grad is None else self._of_gradient(self.entries.grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            raise UnsupportedError("the gradient of a sparse tensor can only be set to None", hint="x.grad = None")
        self.entries.grad = None

    def _of_gradient(self, g: Tensor) -> SparseTensor:
        """Return the gradient of the entries as one of this tensor. Entries at one place have the same gradient."""
        if self.is_merged or self._kind is not sparse_coo:
            return self.like(g)
        return self.like(g).first_of_each()

    def _like(self, g: Array) -> SparseTensor:
        return self._of_gradient(self.entries._like(g))

    def backward(self, gradient: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Add gradients to `.grad` of the leaves. `gradient` must be sparse, with the same places."""
        if not isinstance(gradient, SparseTensor) or not self._has_places_of(gradient):
            raise GraphError(
                "backward of a sparse tensor takes a gradient with the same entries",
                hint="reduce it first, e.g. tl.sparse.sum(y).backward()",
            )
        return self.entries.backward(gradient.entries, *args, **kwargs)

    def _has_places_of(self, other: SparseTensor) -> bool:
        """Return whether the entries of another tensor are at the same places, in the same order."""
        if other.shape_ != self.shape_ or other._kind is not self._kind or other.entries.shape != self.entries.shape:
            return False
        return all(bool((a.array == b.array).all()) for a, b in zip(self.places, other.places, strict=True))

    # ------------------------------------------------------------------------------------------------------ dispatch

    def _answer(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute a function of dense tensors that has failed because this tensor is among its arguments.

        Returns: NotImplemented to let the error through.
        """
        name = function.__name__
        own = getattr(SparseTensor, name, None)
        if own is not None and own is not getattr(Tensor, name, None):
            return own(*args, **kwargs)
        if isinstance(sys.exc_info()[1], LayoutError):
            raise LayoutError(name, self._kind) from None
        return NotImplemented


def implements(*names: str) -> Callable[[F], F]:
    """File a function as the one of these names that functions of dense tensors ask for. It may get dense tensors."""

    def file(function: F) -> F:
        for name in names:
            setattr(SparseTensor, name, function)
        return function

    return file


def make(
    layout: Layout, places: Sequence[Tensor], entries: Tensor, shape: Sequence[int], is_merged: bool = False
) -> SparseTensor:
    """Return a tensor of checked parts."""
    result: SparseTensor = object.__new__(SparseTensor)
    result._kind, result.places, result.entries = layout, tuple(places), entries
    result.shape_, result.is_merged = tuple(map(int, shape)), is_merged
    return result


def shares_places(a: SparseTensor, b: SparseTensor) -> bool:
    """Return whether two tensors refer to the very same places, as those that `like` makes do."""
    return a._kind is b._kind and all(map(is_, a.places, b.places))


def require_coo(x: Any, name: str) -> SparseTensor:
    """Return a tensor in the COO layout. Raises: UnsupportedError for another one"""
    if not isinstance(x, SparseTensor) or x.layout is not sparse_coo:
        title = TITLES[x.layout] if isinstance(x, SparseTensor) else "Strided"
        raise UnsupportedError(f"{name} expected sparse coordinate tensor layout but got {title}", hint="to_sparse()")
    return x


def require_one_shape(name: str, a: Tensor, b: Tensor) -> None:
    """Raise ShapeError if two tensors differ in shape."""
    if a.shape != b.shape:
        raise ShapeError(f"{name}: expected tensors of one size, got {tuple(a.shape)} and {tuple(b.shape)}")


def tensor_of_rows(g: RowGradient) -> SparseTensor:
    """Return the gradient of some rows of a table."""
    return make(sparse_coo, (wrap(g.rows.reshape(1, -1)),), wrap(g.values), g.shape)


RowGradient.as_tensor = staticmethod(tensor_of_rows)
