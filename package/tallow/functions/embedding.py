"""Embeddings: look up vectors by index."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from tallow import devices
from tallow.core.apply import apply, is_recorded
from tallow.core.arguments import check_type
from tallow.core.creation import arange
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.dtypes import Array, cast, dtype_of, int64, widen
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, UnsupportedError
from tallow.ops.embedding import check_indices
from tallow.ops.embedding import embedding as embedding_op
from tallow.ops.embedding_bag import embedding_bag as embedding_bag_op
from tallow.tape.graph import note_write
from tallow.tape.modes import is_exporting, mode


@public("F")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up the rows of `weight` at the indices `input`.

    Args:
        padding_idx: this row gets no gradient.
        max_norm: the rows looked up are first shortened, in `weight` itself, to at most this `norm_type` norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its uses.
        sparse: the gradient of a leaf is a sparse tensor of the rows that were used; see `tallow.sparse`.

    Shapes:  input (*) of int64 or int32, weight (V, D) -> (*, D)
    Raises:  DimensionError for an index outside the table; UnsupportedError for a gradient
             with `sparse` and `scale_grad_by_freq`
    """
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"embedding: input must be a Tensor of indices, not {type(input).__name__}")
    if max_norm is not None:
        shorten_rows("embedding", weight, input, max_norm, norm_type)
    if sparse is not False:
        check_type("embedding", "sparse", sparse, (bool,))
        sparse = prepare_sparse("embedding", weight, scale_grad_by_freq)
    return embedding_op.call(input, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def prepare_sparse(name: str, weight: Tensor, scale_grad_by_freq: bool) -> bool:
    """Load sparse tensors. Return whether the gradient of a table can be sparse: only a leaf takes it."""
    if scale_grad_by_freq and is_recorded(weight):
        raise UnsupportedError(f"{name}: scale_grad_by_freq does not support sparse gradients", hint="use one of them")
    import_module("tallow.sparse")
    return weight.is_leaf


def shorten_rows(name: str, weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` at these indices, in place, to a norm of at most `max_norm`."""
    if weight.ndim != 2:
        raise ShapeError(f"{name}: expected a weight (V, D), got shape {tuple(weight.shape)}")
    check_indices(name, indices.array, weight.array.shape[0])
    xp = devices.array_module(weight.array)
    used = xp.unique(indices.array)
    rows = widen(weight.array[used])
    norms = (xp.abs(rows) ** norm_type).sum(axis=1, keepdims=True) ** (1 / norm_type)
    scale = xp.where(norms > max_norm, max_norm / (norms + 1e-7), 1)  # 1e-7 as in PyTorch's embedding_renorm_
    weight.array[used] = cast((rows * scale).astype(rows.dtype), dtype_of(weight.array))
    note_write(weight)


@public("F", checked=True)
@recorded_whole
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of `weight` for each bag of indices.

    Args:
        offsets: where each bag begins in a one-dim input.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for each index, with mode "sum".
        include_last_offset: offsets hold the end of the last bag too.
        padding_idx: this row does not count.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for `embedding`.

    Shapes:  input (B, n), or (n) with offsets (B), weight (V, D) -> (B, D); an empty bag gives zeros
    Raises:  UnsupportedError for `sparse` with mode "max" or `scale_grad_by_freq`
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"embedding_bag: mode has to be one of sum, mean or max, got {mode!r}")
    if weight.ndim != 2:
        raise ArgumentError(f"embedding_bag: weight has to be a 2D Tensor, got {tuple(weight.shape)}")
    if per_sample_weights is not None:
        if mode != "sum":
            raise ArgumentError(f"embedding_bag: per_sample_weights are only supported for mode 'sum', not {mode!r}")
        if per_sample_weights.array.shape != input.array.shape:
            raise ArgumentError(
                f"embedding_bag: expected per_sample_weights {tuple(per_sample_weights.shape)} to have the shape of "
                f"input {tuple(input.shape)}"
            )
        per_sample_weights = per_sample_weights.reshape(-1)
    if sparse and mode == "max":
        raise UnsupportedError("embedding_bag: mode 'max' does not support sparse gradients", hint="sparse=False")
    if sparse:
        sparse = prepare_sparse("embedding_bag", weight, scale_grad_by_freq)
    bags, count = _bags(input, offsets, include_last_offset)
    if max_norm is not None:
        shorten_rows("embedding_bag", weight, input, max_norm, norm_type)
    return apply(
        embedding_bag_op, weight, per_sample_weights, input.array.reshape(-1), bags,
        count=count, mode=mode, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
    )  # fmt: skip


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Array, int]:
    """Return the bag of each index, and the number of bags."""
    xp = devices.array_module(input.array)
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError("embedding_bag: offsets has to be None for a 2D input, whose rows are the bags")
        batch, length = input.array.shape
        return xp.repeat(xp.arange(batch, dtype=np.int64), length), batch
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ArgumentError("embedding_bag: expected a 2D input, or a 1D input and 1D offsets")
    starts = offsets.array
    if not len(starts) or int(starts[0]):
        raise ShapeError("embedding_bag: offsets[0] has to be 0: the first bag begins at position 0")
    if int(starts[-1]) > len(input.array):
        raise ShapeError(f"embedding_bag: offsets[-1] must not exceed input's length {len(input.array)}")
    if bool((starts[1:] < starts[:-1]).any()):
        raise ShapeError("embedding_bag: offsets must not decrease")
    count = len(starts) - include_last_offset
    position = xp.arange(len(input.array), dtype=np.int64)
    return xp.searchsorted(starts[:count], position, side="right").astype(np.int64) - 1, count


@public("F")
@devices.guarded
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Encode indices along a new last dim: 1 at the index, 0 elsewhere.

    Args:    num_classes: size of the last dim; -1 for one more than the largest index
    Shapes:  tensor (*) of int64 or int32 -> (*, num_classes) of int64
    """
    if isinstance(num_classes, float):
        raise ArgumentTypeError("one_hot: argument 'num_classes' must be int, not float")
    indices = tensor.array
    if indices.dtype not in (np.int64, np.int32):  # NumPy's own integers are int32 in a browser
        raise DtypeError(f"one_hot: only applicable to int64 tensors, not {tensor.dtype}", hint="convert with .long()")
    if not indices.size and num_classes <= 0:
        raise ShapeError("one_hot: can not infer total number of classes from empty tensor")
    checks = indices.size and (type(indices) is np.ndarray or num_classes == -1)  # on a GPU a check waits for it
    if checks and int(indices.min()) < 0:
        raise ShapeError("one_hot: class values must be non-negative")
    is_exported = is_exporting()
    if is_exported and num_classes == -1:
        mode.tracer.reads(indices, "one_hot() without num_classes")
    classes = int(indices.max()) + 1 if num_classes == -1 else num_classes
    if classes < 1 or (checks and int(indices.max()) >= classes):
        raise ShapeError(f"one_hot: class values must be smaller than num_classes {num_classes}")
    if is_exported:
        return (tensor[..., None] == arange(classes, device=tensor.device)).to(int64)
    xp = devices.array_module(indices)
    return wrap((indices[..., None] == xp.arange(classes, dtype=np.int64)).astype(np.int64))
