"""Functions of tensors that are composed of ops: no backward of their own, and no arrays."""

from tallow.functions import (
    activation,
    casting,
    dropout,
    elementwise,
    extremes,
    filling,
    indexing,
    shape,
)

__all__ = [
    "activation",
    "casting",
    "dropout",
    "elementwise",
    "extremes",
    "filling",
    "indexing",
    "shape",
]
