"""torch._foreach_*: one function for lists of tensors, by the method of each tensor.

PyTorch's optimizers and programs that clip gradients call them. The name gives the method: `_foreach_add_` is `add_`
of each tensor, with the element of each list that is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow import linalg
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, MissingNameError, ShapeError

_PREFIX = "_foreach_"
_BY_VALUE = ("addcmul", "addcdiv")  # whose third argument is the keyword `value` of the method
_WITH_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _powsum(input: Tensor, ord: float = 2, dtype: Any = None) -> Tensor:
    return input.abs().pow(ord).sum(dtype=dtype)


_OTHERS: dict[str, Callable[..., Any]] = {"norm": linalg.vector_norm, "powsum": _powsum}


def foreach(name: str) -> Callable[..., Any]:
    """Return the function of a name such as "_foreach_add_".

    It returns a tuple of results, or the first list if it writes in place. An argument is the same for all tensors, or
    a list with one for each. A number may be in place of the first list, as in `_foreach_pow(2, exponents)`.

    Raises: AttributeError if tensors have no such method
    """
    short = name.removeprefix(_PREFIX)
    plain = short.removesuffix("_")
    if not name.startswith(_PREFIX) or not (plain in _OTHERS or callable(getattr(Tensor, short, None))):
        raise MissingNameError(f"module 'torch' has no attribute {name!r}")

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, list | tuple):  # a number first
            tensors = list(args[0])
            return tuple(getattr(tensors[0].new_tensor(self), short)(x) for x in tensors)
        if not self:
            raise ArgumentError(f"{name}: Tensor list must have at least one tensor.")
        values = [_each(self, short, arg) for arg in args]
        names = {key: _each(self, short, value) for key, value in kwargs.items()}
        results = tuple(
            _call(short, x, [value[i] for value in values], {key: value[i] for key, value in names.items()})
            for i, x in enumerate(self)
        )
        return self if short.endswith("_") else results

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Call `{short}` of each tensor of a list."
    return function


def _each(tensors: Any, name: str, value: Any) -> Any:
    """Return an argument for each tensor. A tensor with one dim is a list of numbers for `addcmul` and `addcdiv`."""
    if isinstance(value, Tensor) and value.ndim == 1 and name.removesuffix("_") in _BY_VALUE:
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return [value] * len(tensors)
    if len(value) != len(tensors):
        raise ShapeError(
            f"{_PREFIX}{name}: Tensor list must have same number of elements as scalar list or other list, got "
            f"{len(tensors)} and {len(value)}"
        )
    return value


def _call(name: str, x: Tensor, args: list[Any], kwargs: dict[str, Any]) -> Any:
    plain, in_place = name.removesuffix("_"), "_" if name.endswith("_") else ""
    if plain in _OTHERS:
        return _OTHERS[plain](x, *args, **kwargs)
    if plain in _BY_VALUE and len(args) == 3:
        kwargs["value"] = args.pop()
    if "scalars" in kwargs:
        kwargs["value"] = kwargs.pop("scalars")
    if plain in _WITH_NUMBERS and not isinstance(args[0], Tensor):
        return getattr(x, _WITH_NUMBERS[plain] + in_place)(*args)
    return getattr(x, name)(*args, **kwargs)
