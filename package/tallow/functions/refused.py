"""Names that PyTorch's tensors have, and that raise for dense tensors or since their removal."""

from __future__ import annotations

from typing import Any, NoReturn

from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import UnsupportedError


def _no_sparse(name: str, layout: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} expected {layout} tensor layout but got Strided", hint="convert the tensor with to_sparse()"
    )


def _removed(name: str, successor: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name}: this function was deprecated since version 1.9 and is now removed", hint=f"use linalg.{successor}"
    )


@public("Tensor")
def coalesce(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""
    raise _no_sparse("coalesce", "sparse coordinate")


@public("Tensor")
def is_coalesced(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""
    raise _no_sparse("is_coalesced", "sparse coordinate")


@public("Tensor")
def indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse coordinate layout have it."""
    raise _no_sparse("indices", "sparse coordinate")


@public("Tensor")
def values(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only sparse tensors have it."""
    raise _no_sparse("values", "sparse")


@public("Tensor")
def crow_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse row compressed layout have it."""
    raise _no_sparse("crow_indices", "sparse row compressed")


@public("Tensor")
def col_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse row compressed layout have it."""
    raise _no_sparse("col_indices", "sparse row compressed")


@public("Tensor")
def ccol_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse column compressed layout have it."""
    raise _no_sparse("ccol_indices", "sparse column compressed")


@public("Tensor")
def row_indices(input: Tensor) -> NoReturn:
    """Raise UnsupportedError: only tensors in sparse column compressed layout have it."""
    raise _no_sparse("row_indices", "sparse column compressed")


@public("tl Tensor")
def eig(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eig`."""
    raise _removed("eig", "eig")


@public("tl Tensor")
def lstsq(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.lstsq`."""
    raise _removed("lstsq", "lstsq")


@public("tl")
def matrix_rank(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.matrix_rank`."""
    raise _removed("matrix_rank", "matrix_rank")


@public("tl Tensor")
def solve(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.solve`."""
    raise _removed("solve", "solve")


@public("tl Tensor")
def symeig(input: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise UnsupportedError: PyTorch has removed it in favour of `linalg.eigh`."""
    raise _removed("symeig", "eigh")
