"""Looking up vectors by index."""

from __future__ import annotations

from tallow.apply import apply
from tallow.autograd.graph import note_write
from tallow.devices import array_module
from tallow.dtypes import cast, dtype_of, widen
from tallow.errors import ArgumentTypeError
from tallow.offer import offer
from tallow.ops.embedding import check_indices
from tallow.ops.embedding import embedding as embedding_op
from tallow.tensor import Tensor


@offer("F")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`.

    Args:
        padding_idx: this row gets no gradient.
        max_norm: the rows looked up are first shortened, in `weight` itself, to at most this `norm_type` norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its uses.
        sparse: gradients are dense in tallow whatever it says; their values are the same.

    Shapes:  input (*) of int64 or int32, weight (V, D) -> (*, D)
    Raises:  DimensionError for an index outside the table
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"embedding: input must be a Tensor of indices, not {type(input).__name__}")
    if max_norm is not None:
        shorten_rows("embedding", weight, input, max_norm, norm_type)
    return apply(embedding_op, input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq)


def shorten_rows(name: str, weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` that are looked up, in place, to a norm of at most `max_norm`."""
    check_indices(name, indices.array, weight.array.shape[0])
    xp = array_module(weight.array)
    used = xp.unique(indices.array)
    rows = widen(weight.array[used])
    norms = (xp.abs(rows) ** norm_type).sum(axis=1, keepdims=True) ** (1 / norm_type)
    scale = xp.where(norms > max_norm, max_norm / (norms + 1e-7), 1)  # 1e-7 as in PyTorch's embedding_renorm_
    weight.array[used] = cast((rows * scale).astype(rows.dtype), dtype_of(weight.array))
    note_write(weight)
