"""Combinations of elements, Vandermonde matrices, and multi-dimensional indices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from tallow.core.creation import tensor
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.functions.linalg import linalg_vander
from tallow.ops.dims import as_int, as_ints


@public("tl", checked=True)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of `r` elements of a vector, in the order of `itertools.combinations`.

    Shapes:  (N,) -> (number of combinations, r)
    """
    if input.ndim != 1:
        raise ShapeError(f"combinations: expected a vector, got shape {tuple(input.shape)}")
    if r < 0:
        raise ArgumentError(f"combinations: expected a non-negative number of elements, got r={r}")
    if r == 0:
        return input[:0].detach()
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    indices = np.array([*choose(range(len(input)), r)], np.int64).reshape(-1, r)
    return input[tensor(indices, device=input.device)]


@public("tl", checked=True)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return a row of powers for each element of a vector, the highest first unless `increasing`.

    Shapes:  (M,) -> (M, N)
    """
    if x.ndim != 1:
        raise ShapeError(f"vander: expected a vector, got shape {tuple(x.shape)}")
    count = x.shape[0] if N is None else as_int(N, "vander")
    if count < 0:
        raise ArgumentError(f"vander: N must be non-negative, got {count}")
    powers = linalg_vander(x, N=count) if count > 1 else x.new_ones(len(x), count)
    return powers if increasing else powers.flip(-1)


@public("tl")
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert indices into a flattened tensor of `shape` to an index along each dim.

    Raises:  ArgumentError for a shape with a negative dim
    """
    sizes = as_ints(shape, "unravel_index")
    if any(n < 0 for n in sizes):
        raise ArgumentError(f"unravel_index: shape must have no negative dims, got {list(sizes)}")
    return tuple((indices // math.prod(sizes[i + 1 :])) % n for i, n in enumerate(sizes))
