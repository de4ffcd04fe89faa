"""Choices among the elements of a vector, powers of them, and places of the elements of a tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from tallow.creation import tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.functions.linalg import linalg_vander
from tallow.offer import offer
from tallow.tensor import Tensor


@offer("tl")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, in the order of `itertools.combinations`.

    Shapes:  (N,) -> (number of choices, r)
    """
    if input.ndim != 1:
        raise ShapeError(f"combinations: expected a vector, got shape {tuple(input.shape)}")
    if r < 0:
        raise ArgumentError(f"combinations: expected a non-negative number of elements, got r={r}")
    if r == 0:
        return input[:0].detach()
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array([*choose(range(len(input)), r)], np.int64).reshape(-1, r)
    return input[tensor(chosen, device=input.device)]


@offer("tl")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Rows of powers of the elements of a vector, the highest first unless `increasing`.

    Shapes:  (M,) -> (M, N)
    """
    if x.ndim != 1:
        raise ShapeError(f"vander: expected a vector, got shape {tuple(x.shape)}")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise ArgumentError(f"vander: N must be non-negative, got {count}")
    powers = linalg_vander(x, N=count) if count > 1 else x.new_ones(len(x), count)
    return powers if increasing else powers.flip(-1)


@offer("tl")
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The places along each dim of the elements at these places of the flattened tensor.

    Raises:  ArgumentError for a shape with a negative dim
    """
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if any(n < 0 for n in sizes):
        raise ArgumentError(f"unravel_index: shape must have no negative dims, got {sizes}")
    found = []
    for i, n in enumerate(sizes):
        found.append((indices // math.prod(sizes[i + 1 :])) % n)
    return tuple(found)
