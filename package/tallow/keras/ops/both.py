"""Functions for tensors and for symbolic tensors, under one name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tallow.keras.functions import FUNCTIONS
from tallow.keras.layers.operator import applied
from tallow.keras.symbolic import KerasTensor, is_symbolic


def shape(x: Any) -> tuple[Any, ...]:
    """The sizes; of a symbolic tensor with None where any fits."""
    return x.shape if isinstance(x, KerasTensor) else FUNCTIONS["shape"](x)


def ndim(x: Any) -> int:
    return x.ndim if isinstance(x, KerasTensor) else FUNCTIONS["ndim"](x)


def dtype(x: Any) -> str:
    """Its name."""
    return str(x.dtype.name) if isinstance(x, KerasTensor) else FUNCTIONS["dtype"](x)


def is_tensor(x: Any) -> bool:
    return isinstance(x, KerasTensor) or FUNCTIONS["is_tensor"](x)


KNOWN_WITHOUT_VALUES = {function.__name__: function for function in (dtype, is_tensor, ndim, shape)}


def offered(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The same, for symbolic tensors too."""
    return {name: KNOWN_WITHOUT_VALUES.get(name) or _for_both(name, f) for name, f in functions.items()}


def _for_both(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_symbolic((args, kwargs)):
            return applied(name, args, kwargs)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call
