"""Sparse tensors, as torch.sparse: COO, CSR, CSC, BSR and BSC, with gradients for their entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.sparse import coordinates, printing  # noqa: F401 - it files how they print
from tallow.sparse.arithmetic import log_softmax, softmax, sum
from tallow.sparse.creation import sparse_coo_tensor
from tallow.sparse.products import addmm, mm, sampled_addmm
from tallow.sparse.tensor import SparseTensor

__all__ = [
    "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor", "SparseTensor", "addmm", "check_sparse_tensor_invariants",
    "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
]  # fmt: skip


def _typed(name: str, dtype: dtypes.dtype) -> Callable[..., SparseTensor]:
    def function(*args: Any) -> SparseTensor:
        return sparse_coo_tensor(*args, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return a COO tensor of {dtype.name}: {name}(indices, values, size), or {name}(size)."
    return function


FloatTensor = _typed("FloatTensor", dtypes.float32)
DoubleTensor = _typed("DoubleTensor", dtypes.float64)
LongTensor = _typed("LongTensor", dtypes.int64)
IntTensor = _typed("IntTensor", dtypes.int32)


@contextmanager
def check_sparse_tensor_invariants(enable: bool = True) -> Iterator[None]:
    """Do nothing: tallow always checks the parts of a sparse tensor."""
    yield


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """Return a sparse matrix with these diagonals.

    Shapes:  diagonals (n, m) or (m,), offsets (n,) or (): element j of a diagonal is in column j -> shape
    """
    rows = diagonals.reshape(-1, diagonals.shape[-1])
    starts = offsets.reshape(-1)
    columns = starts.new_tensor([list(range(min(rows.shape[1], shape[1])))]).expand(len(starts), -1)
    at = columns - starts[:, None]
    inside = (at >= 0) & (at < shape[0])
    places = starts.new_tensor([]).new_zeros((2, int(inside.sum())))
    places[0], places[1] = at[inside], columns[inside]
    matrix = sparse_coo_tensor(places, rows[:, : columns.shape[1]][inside], shape)
    return matrix if layout is None else coordinates.convert(matrix, layout)
