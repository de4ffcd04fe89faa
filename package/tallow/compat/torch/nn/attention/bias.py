"""torch.nn.attention.bias: masks of attention to earlier positions."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

import tallow
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the scores at which the diagonal of a mask starts."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A mask for `scaled_dot_product_attention`: True where a query attends to a key.

    Args:
        variant: the first query meets the first key, or the last query the last key.
        seq_len_q, seq_len_kv: the numbers of queries and keys.

    Shapes:  (seq_len_q, seq_len_kv)
    """

    variant: CausalVariant

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        diagonal = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = tallow.ones(seq_len_q, seq_len_kv, dtype=tallow.bool).tril(diagonal).as_subclass(cls)
        mask.variant = variant
        return mask

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.seq_len_q, self.seq_len_kv = seq_len_q, seq_len_kv


def causal_upper_left(*size: int) -> CausalBias:
    """Return a mask whose diagonal starts at the first query and the first key."""
    return _mask(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return a mask whose diagonal ends at the last query and the last key."""
    return _mask(CausalVariant.LOWER_RIGHT, size)


def _mask(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise ArgumentError(f"{variant.name.lower()} only supports 2D tensors, got a size of {len(size)} dims")
    return CausalBias(variant, *size)
