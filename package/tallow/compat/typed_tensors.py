"""FloatTensor, LongTensor and so on, PyTorch's former names of dtypes; and Variable, its former tensor class."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.core.creation import empty, tensor
from tallow.core.tensor import Tensor
from tallow.functions.casting import CLASS_NAMES
from tallow.lazy_names import names_of


class _TypedTensor(type):
    """The class of FloatTensor and so on: `isinstance(x, FloatTensor)` checks the dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """Create a tensor of these numbers, or an uninitialised one of these sizes; an empty one without arguments."""
        if len(args) == 1 and not isinstance(args[0], int):
            return tensor(args[0], dtype=cls.dtype, device=device)
        return empty(args or (0,), dtype=cls.dtype, device=device)


TYPES: dict[str, type] = {
    name: _TypedTensor(name, (), {"dtype": dtype, "__module__": __name__, "__doc__": f"Tensors of {dtype.name}."})
    for dtype, name in CLASS_NAMES.items()
}


class _AnyTensor(type):
    """The class of Variable: `isinstance(x, Variable)` is true for every tensor."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        """Return a tensor on the same memory, without a history."""
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_AnyTensor):
    """The name of a tensor with a gradient before PyTorch 0.4."""


__all__ = [*TYPES, "Variable"]  # noqa: PLE0604 - they are strings
__getattr__, __dir__ = names_of(__name__, registry=TYPES)
