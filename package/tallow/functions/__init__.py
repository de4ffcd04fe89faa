"""Functions of tensors that are composed of ops: no backward of their own, and no arrays."""

from tallow.functions import casting, extremes, filling, indexing, shape

__all__ = ["casting", "extremes", "filling", "indexing", "shape"]
