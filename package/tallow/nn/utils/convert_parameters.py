"""Convert parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.joining import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all elements to one vector; differentiable."""
    return apply(cat, [parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the parameters to views of consecutive parts of a vector.

    Raises:  ShapeError for a vector of another length; nothing is changed then
    """
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(f"vector_to_parameters: expected a Tensor, got {type(vec).__name__}")
    targets = list(parameters)
    count = sum(parameter.numel() for parameter in targets)
    if tuple(vec.shape) != (count,):
        raise ShapeError(f"vector_to_parameters: expected a vector of {count} elements, got {tuple(vec.shape)}")
    start = 0
    for parameter in targets:
        end = start + parameter.numel()
        parameter.data = vec.detach()[start:end].reshape(parameter.shape)
        start = end
