"""vmap: a function of the elements of a batch as a function of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.core.trees import filled, leaves
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.functions.batching.level import Level
from tallow.functions.batching.tensors import batch_of, holds_tensors
from tallow.ops.joining import cat
from tallow.random import default_generator
from tallow.tape.modes import is_exporting


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that computes `func` for all elements of a batch at once.

    `func` is called with tensors that have the shape of one element; each op computes all. An op without a batching
    rule is computed for each element, with a warning.

    Args:
        in_dims: along which dim to take the elements of each argument, nested as the arguments or one for all; None
            passes a tensor on as it is, and so are keyword arguments.
        out_dims: the new dim of each result; None for one that is the same for all elements.
        randomness: "error" refuses functions that draw random numbers, "same" gives all elements the same numbers,
            "different" calls the function for each element.
        chunk_size: the number of elements to compute at once, to use less memory; None for all.

    Raises: BatchError, a RuntimeError, where the function needs the elements one by one: `item()`, `if x > 0`

    Example:
        >>> import tallow as tl
        >>> tl.func.vmap(tl.dot)(tl.ones(3, 2), tl.ones(3, 2))
        tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise ArgumentError(f"vmap: randomness={randomness!r}; expected 'error', 'different' or 'same'")
    if chunk_size is not None and chunk_size < 1:
        raise ArgumentError(f"vmap: chunk_size={chunk_size}; expected a positive number, or None")

    @wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        spread, parts = _spread(in_dims, args), leaves(args)
        size = _batch_size(parts, spread)
        first = [x if dim is None else _to_front(x, dim) for x, dim in zip(parts, spread, strict=True)]
        step = 1 if randomness == "different" else chunk_size or size
        state = default_generator.get_state() if randomness == "same" and step < size else None
        chunks = []
        for start in range(0, size, step) if size else (0,):
            if start and state is not None:
                default_generator.set_state(state)
            chunk = [
                x if dim is None or step >= size else x[start : start + step]
                for x, dim in zip(first, spread, strict=True)
            ]
            batch = Level(min(step, size - start), may_draw=randomness != "error")
            chunks.append(_run(func, batch, filled(args, batch.made(chunk, spread)), kwargs, out_dims))
        return _joined(chunks, out_dims)

    return run


def _run(func: Callable[..., Any], level: Level, args: tuple[Any, ...], kwargs: dict[str, Any], out_dims: Any) -> Any:
    """Call a function with a batch, and return its results with their new dims."""
    with level:
        result = func(*args, **kwargs)
    results = leaves(result)
    if not all(isinstance(y, Tensor) or holds_tensors(y) for y in results):
        raise ArgumentTypeError("vmap: the function must return tensors")
    outputs = [batch_of(y, level, dim) for y, dim in zip(results, _spread(out_dims, result), strict=True)]
    return filled(result, outputs)


def _joined(chunks: Sequence[Any], out_dims: Any) -> Any:
    """Return the results of all chunks, joined along their new dims."""
    if len(chunks) == 1:
        return chunks[0]
    columns = zip(*map(leaves, chunks), strict=True)
    dims = _spread(out_dims, chunks[0])
    joined = [c[0] if dim is None else apply(cat, list(c), dim) for c, dim in zip(columns, dims, strict=True)]
    return filled(chunks[0], joined)


def _to_front(x: Any, dim: int) -> Any:
    """Return a view with the dim in front; without a history, if there is none, so that the function may change it."""
    if holds_tensors(x):
        return x.permute(dim % x.ndim, *(i for i in range(x.ndim) if i != dim % x.ndim)) if dim else x
    x = x if x.requires_grad or is_exporting() else x.detach()  # the argument of a graph may require one
    return x.movedim(dim, 0) if dim else x


def _spread(dims: Any, tree: Any) -> list[int | None]:
    """Return a dim for each leaf of a tree; one dim stands for all below it."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves(tree))
    parts = list(tree.values()) if isinstance(tree, dict) else tree
    own = list(dims.values()) if isinstance(dims, dict) else dims
    if not isinstance(parts, tuple | list) or len(parts) != len(own):
        raise ArgumentError("vmap: the dims are not nested as the arguments or results")
    return [dim for each, part in zip(own, parts, strict=True) for dim in _spread(each, part)]


def _batch_size(parts: Sequence[Any], dims: Sequence[int | None]) -> int:
    sizes = set()
    for x, dim in zip(parts, dims, strict=True):
        if dim is None:
            continue
        if not (isinstance(x, Tensor) or holds_tensors(x)) or not -x.ndim <= dim < x.ndim:
            what = f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise ArgumentError(f"vmap: cannot take elements along dim {dim} of {what}", hint="pass None in in_dims")
        sizes.add(x.shape[dim])
    if len(sizes) != 1:
        raise ArgumentError(f"vmap: expected one size of the batch; got {sorted(sizes)}")
    return int(sizes.pop())
