"""Arithmetic of entries: sums, products with numbers, functions that keep zero, reductions, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.dtypes import promote_types
from tallow.errors import ArgumentTypeError, ShapeError, UnsupportedError
from tallow.ops.dims import is_int, normalize_dim
from tallow.ops.memory_format import sparse_coo, sparse_csr
from tallow.ops.table import OPS
from tallow.sparse.coordinates import coalesce, convert, flat_places, sparse_dim, sum_at, to_coo, to_dense
from tallow.sparse.shapes import with_places
from tallow.sparse.tensor import (
    BLOCKS,
    LayoutError,
    SparseTensor,
    implements,
    make,
    require_coo,
    require_one_shape,
    shares_places,
)

# ------------------------------------------------------------------------------------------------- of entries alone

# Functions that give zero for zero, so that only the entries change.
KEEP_ZERO = (
    "abs asin asinh atan atanh ceil conj_physical deg2rad erf erfinv expm1 floor frac log1p neg rad2deg relu round "
    "sgn sign sin sinh sqrt square tan tanh trunc isnan isinf isposinf isneginf"
)
LINEAR = ("neg", "deg2rad", "rad2deg", "conj_physical")  # duplicates need not be added first


def _of_entries(name: str) -> None:
    def function(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        if "out" in kwargs:
            raise LayoutError(f"{name} with out", input.layout)
        x = coalesce(input) if input.layout is sparse_coo and name not in LINEAR else input
        return x.like(getattr(x.entries, name)(*args, **kwargs))

    def in_place(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return input.overwrite(f"{name}_", function(input, *args, **kwargs))

    function.__name__, function.__doc__ = name, f"Return {name} of the entries; coalesced first, unless it is linear."
    in_place.__name__, in_place.__doc__ = f"{name}_", f"Write {name} of the entries."
    implements(name)(function)
    if hasattr(Tensor, f"{name}_"):
        implements(f"{name}_")(in_place)


for _name in KEEP_ZERO.split():
    _of_entries(_name)


_CONVERSIONS = "to type_as cpu cuda double float half bfloat16 int long short char byte bool cfloat cdouble pin_memory"


def _conversion(name: str) -> None:
    def function(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        kwargs.pop("memory_format", None)
        args = tuple(a.entries if isinstance(a, SparseTensor) else a for a in args)
        kwargs = {k: v.entries if isinstance(v, SparseTensor) else v for k, v in kwargs.items()}
        if kwargs.pop("layout", None) not in (None, input.layout):
            raise UnsupportedError(f"{name}: the layout cannot change", hint="use to_sparse() or to_dense()")
        entries = getattr(input.entries, name)(*args, **kwargs)
        if entries is input.entries:
            return input
        if entries.device == input.device:
            return input.like(entries)
        return make(input.layout, [x.to(entries.device) for x in input.places], entries, input.shape_, input.is_merged)

    function.__name__, function.__doc__ = name, f"Return the tensor with its entries converted; see `Tensor.{name}`."
    implements(name)(function)


for _name in _CONVERSIONS.split():
    _conversion(_name)

# ------------------------------------------------------------------------------------------------------- two operands


def _number(x: Any) -> Any:
    """Return a number, or a tensor with one element and no dims; None for anything else."""
    is_number = isinstance(x, int | float | complex) or (isinstance(x, Tensor) and x.ndim == 0)
    return x if is_number else None


def _scaled(x: Any, alpha: Any) -> Any:
    return x if alpha == 1 else x * alpha


@implements("add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return input + alpha * other: of two sparse tensors a sparse one, of a dense and a sparse one a dense one."""
    a, b = input, _scaled(other, alpha)
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        if (
            (isinstance(a, SparseTensor) and a.layout is sparse_coo)
            or not isinstance(a, Tensor)
            or not isinstance(b, Tensor)
        ):
            raise UnsupportedError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead.",
                hint="or convert with to_dense()",
            )
        require_one_shape("add", a, b)
        return cast(Any, _dense(a) + _dense(b))
    require_one_shape("add", a, b)
    if a.layout is not b.layout:
        raise UnsupportedError(f"add: layouts {a.layout!r} and {b.layout!r} differ", hint="convert one operand")
    if shares_places(a, b) and (a.is_merged or a.layout is not sparse_coo):
        return a.like(a.entries + b.entries)
    x, y = to_coo(a), to_coo(b)
    if sparse_dim(x) != sparse_dim(y):
        raise ShapeError("add: the operands have other numbers of sparse dims")
    xp = array_module(x.places[0].array)
    places = xp.concatenate((x.places[0].array, y.places[0].array), axis=1)
    total = with_places(places, OPS["cat"].call(_of_one_dtype(x.entries, y.entries), 0), x.shape_)
    if a.layout is not sparse_coo:
        block = a.entries.shape[a.places[1].ndim : a.places[1].ndim + 2] if a.layout in BLOCKS else None
        return convert(total, a.layout, None, block)
    return coalesce(total) if x.is_merged and y.is_merged else total


def _of_one_dtype(a: Tensor, b: Tensor) -> list[Tensor]:
    dtype = promote_types(a.dtype, b.dtype)
    return [a.to(dtype), b.to(dtype)]


def _dense(x: Tensor) -> Tensor:
    return to_dense(x) if isinstance(x, SparseTensor) else x


@implements("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return input - alpha * other, as `add`."""
    return add(input, other, alpha=-alpha)


@implements("rsub")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return other - alpha * input, as `add`."""
    return add(other, input, alpha=-alpha)


@implements("mul", "multiply")
def mul(input: Any, other: Any) -> Any:
    """Return the product of elements: sparse, with the places that both operands have."""
    a, b = (input, other) if isinstance(input, SparseTensor) else (other, input)
    if _number(b) is not None:
        return a.like(a.entries * b)
    if not isinstance(b, Tensor):
        raise ArgumentTypeError(f"mul: expected a Tensor or a number, got {type(b).__name__}")
    if isinstance(b, SparseTensor):
        require_one_shape("mul", a, b)
        return convert(_of_common(coalesce(to_coo(a)), coalesce(to_coo(b))), a.layout)
    b = b.expand(a.shape_)
    if a.layout in BLOCKS:
        raise UnsupportedError("mul of blocks and a dense tensor is not supported", hint="to_sparse_csr()")
    x = to_coo(a)
    factors = b[tuple(wrap(row) for row in x.places[0].array)]
    return (
        x.like(x.entries * factors)
        if a is x or a.layout is not sparse_csr
        else a.like(a.entries * factors.reshape(a.entries.shape))
    )


def _of_common(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return the product of two coalesced tensors: at the places that both have."""
    n = sparse_dim(a)
    of_a, of_b = (flat_places(x.places[0].array, x.shape_[:n]) for x in (a, b))
    xp = array_module(of_a)
    at = xp.searchsorted(of_b, of_a)
    at[at == len(of_b)] = 0
    kept = (of_b[at] == of_a).nonzero()[0] if len(of_b) else xp.zeros(0, np.int64)
    entries = a.entries[wrap(kept)] * b.entries[wrap(at[kept])]
    return cast(SparseTensor, with_places(a.places[0].array[:, kept], entries, a.shape_, True))


@implements("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """Return the quotient by a number."""
    if _number(other) is None or not isinstance(input, SparseTensor):
        shape = list(other.shape) if isinstance(other, Tensor) else None
        raise UnsupportedError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
        )
    x = input if rounding_mode is None or input.layout is not sparse_coo else coalesce(input)
    return x.like(OPS["div"].call(x.entries, other, rounding_mode=rounding_mode))


@implements("floor_divide")
def floor_divide(input: Any, other: Any) -> SparseTensor:
    """Return the quotient by a number, rounded down."""
    return div(input, other, rounding_mode="floor")


@implements("pow")
def pow(input: SparseTensor, exponent: Any) -> SparseTensor:
    """Return the elements to the power of a number above 0."""
    if not isinstance(input, SparseTensor) or not isinstance(exponent, int | float) or not exponent > 0:
        raise UnsupportedError("pow of a sparse tensor takes a number above 0 as its exponent", hint="use to_dense()")
    x = coalesce(input) if input.layout is sparse_coo else input
    return x.like(x.entries**exponent)


def _in_place(name: str, function: Callable[..., Any]) -> None:
    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, SparseTensor):
            return self.overwrite(name, function(self, *args, **kwargs))
        return getattr(self, name)(*(_dense(x) if isinstance(x, Tensor) else x for x in args), **kwargs)

    in_place.__name__, in_place.__doc__ = name, f"Write what `{name[:-1]}` returns; to a dense tensor its elements."
    implements(name)(in_place)


for _name, _function in {"add_": add, "sub_": sub, "mul_": mul, "div_": div, "pow_": pow}.items():
    _in_place(_name, _function)


@implements("sparse_mask")
def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """Return the elements at the places of another sparse tensor."""
    require_one_shape("sparse_mask", self, mask)
    dense, x = _dense(self), to_coo(mask)
    if mask.layout in BLOCKS:
        raise UnsupportedError("sparse_mask with a mask of blocks is not supported", hint="to_sparse_csr()")
    entries = dense[tuple(wrap(row) for row in x.places[0].array)]
    return (
        x.like(entries)
        if mask.layout in (sparse_coo, sparse_csr) and x is mask
        else cast(SparseTensor, convert(x.like(entries), mask.layout))
    )


# --------------------------------------------------------------------------------------------------------- reductions


@implements("sum")
def sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of all elements, or over dims: sparse as long as a sparse dim is left."""
    entries = input.entries if dtype is None else input.entries.to(dtype)
    if dim is None:
        return entries.sum()
    dims = {normalize_dim(d, input.ndim, "sum") for d in ((dim,) if is_int(dim) else dim)}
    if input.layout is not sparse_coo:
        if not keepdim:
            raise UnsupportedError("reduction operations on CSR tensors with keepdim=False is unsupported")
        return convert(sum(to_coo(input), dim, True, dtype=dtype), input.layout)
    n = sparse_dim(input)
    shape = [1 if d in dims else size for d, size in enumerate(input.shape_)]
    dense = tuple(d - n + 1 for d in dims if d >= n)
    entries = entries.sum(dense, keepdim) if dense else entries
    if not keepdim:
        shape = [size for d, size in enumerate(input.shape_) if d not in dims]
    left = [d for d in range(n) if d not in dims]
    if not left and not keepdim:
        return entries.sum(0)
    places = input.places[0].array
    xp = array_module(places)
    if keepdim:
        rows = xp.stack([places[d] if d in left else xp.zeros_like(places[d]) for d in range(n)])
    else:
        rows = places[xp.asarray(left)]
    return coalesce(with_places(rows, entries, shape))


@implements("any")
def any_of(input: SparseTensor) -> Tensor:
    """Return whether any element is not zero."""
    return coalesce(to_coo(input)).entries.any()


@implements("norm")
def norm(input: SparseTensor, p: Any = "fro", *args: Any, **kwargs: Any) -> Tensor:
    """Return the norm of all elements."""
    if args or kwargs.get("dim") is not None:
        raise UnsupportedError("norm of a sparse tensor over dims is not supported", hint="use to_dense()")
    return coalesce(to_coo(input)).entries.flatten().norm(p)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the softmax of the entries along a dim; elements that are not stored count as minus infinity."""
    return _softmax(input, dim, dtype, is_log=False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """Return the logarithm of `softmax`."""
    return _softmax(input, dim, dtype, is_log=True)


def _softmax(input: SparseTensor, dim: int, dtype: Any, is_log: bool) -> SparseTensor:
    x = coalesce(require_coo(input, "softmax"))
    d, n = normalize_dim(dim, x.ndim, "softmax"), sparse_dim(x)
    entries = x.entries if dtype is None else x.entries.to(dtype)
    if d >= n:
        return x.like(OPS["log_softmax" if is_log else "softmax"].call(entries, d - n + 1))
    others = [i for i in range(n) if i != d]
    places = x.places[0].array
    xp = array_module(places)
    sizes = [x.shape_[i] for i in others]
    flat = flat_places(places[xp.asarray(others, np.int64)] if others else places[:0], sizes)
    groups, group = xp.unique(flat, return_inverse=True)
    group = group.reshape(-1)
    largest = xp.full((len(groups), *entries.shape[1:]), -math.inf, entries.array.dtype)
    xp.maximum.at(largest, group, entries.array)
    shifted = entries - wrap(largest)[wrap(group)]
    exponentials = shifted.exp()
    totals = sum_at(exponentials, group, len(groups))
    return x.like(shifted - totals.log()[wrap(group)] if is_log else exponentials / totals[wrap(group)])
