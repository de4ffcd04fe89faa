"""Methods of dense tensors that make sparse ones. `tallow.sparse` is imported at the first use."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tallow.core.public_api import public
from tallow.core.tensor import Tensor


def _of_sparse(name: str, module: str = "coordinates") -> Any:
    return getattr(import_module(f"tallow.sparse.{module}"), name)


@public("Tensor")
def to_sparse(
    input: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Sequence[int] | None = None,
    dense_dim: int | None = None,
) -> Tensor:
    """Return the elements that are not zero: to_sparse(), to_sparse(sparse_dim), to_sparse(layout=...)."""
    return _of_sparse("to_sparse")(
        input, sparse_dim=sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim
    )


@public("Tensor")
def to_sparse_coo(input: Tensor) -> Tensor:
    """Return the elements that are not zero as a sparse tensor in the COO layout."""
    return _of_sparse("to_sparse")(input)


@public("Tensor")
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return a matrix, or a batch of them, with compressed rows."""
    return _of_sparse("to_sparse_csr")(input, dense_dim)


@public("Tensor")
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return a matrix, or a batch of them, with compressed columns."""
    return _of_sparse("to_sparse_csc")(input, dense_dim)


@public("Tensor")
def to_sparse_bsr(input: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
    """Return a matrix, or a batch of them, with compressed rows of blocks."""
    return _of_sparse("to_sparse_bsr")(input, blocksize, dense_dim)


@public("Tensor")
def to_sparse_bsc(input: Tensor, blocksize: Sequence[int], dense_dim: int | None = None) -> Tensor:
    """Return a matrix, or a batch of them, with compressed columns of blocks."""
    return _of_sparse("to_sparse_bsc")(input, blocksize, dense_dim)


@public("Tensor")
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements at the places of a sparse tensor."""
    return _of_sparse("sparse_mask", "arithmetic")(input, mask)
