"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from tallow.apply import apply
from tallow.errors import ArgumentTypeError, ShapeError
from tallow.ops.joining import cat
from tallow.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements in one vector, through which gradients go."""
    return apply(cat, [parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters views of consecutive parts of a vector.

    Raises:  ShapeError, before anything is changed, for a vector of another length
    """
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(f"vector_to_parameters: expected a Tensor, got {type(vec).__name__}")
    given = list(parameters)
    count = sum(parameter.numel() for parameter in given)
    if tuple(vec.shape) != (count,):
        raise ShapeError(f"vector_to_parameters: {count} parameters do not fit a vector {tuple(vec.shape)}")
    start = 0
    for parameter in given:
        end = start + parameter.numel()
        parameter.data = vec.detach()[start:end].reshape(parameter.shape)
        start = end
