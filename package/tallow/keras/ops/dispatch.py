"""Functions that accept both tensors and symbolic tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from tallow.keras.functions import FUNCTIONS
from tallow.keras.layers.operator import apply_symbolic
from tallow.keras.symbolic import KerasTensor, is_symbolic


def shape(x: Any) -> tuple[Any, ...]:
    """Return the shape; a symbolic tensor has None for unknown sizes."""
    return x.shape if isinstance(x, KerasTensor) else FUNCTIONS["shape"](x)


def ndim(x: Any) -> int:
    """Return the number of dims."""
    return x.ndim if isinstance(x, KerasTensor) else FUNCTIONS["ndim"](x)


def dtype(x: Any) -> str:
    """Return the name of the dtype."""
    return str(x.dtype.name) if isinstance(x, KerasTensor) else FUNCTIONS["dtype"](x)


def is_tensor(x: Any) -> bool:
    """Return whether `x` is a tensor or a symbolic tensor."""
    return isinstance(x, KerasTensor) or FUNCTIONS["is_tensor"](x)


KNOWN_WITHOUT_VALUES = {function.__name__: function for function in (dtype, is_tensor, ndim, shape)}


def with_symbolic(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions with support for symbolic tensors."""
    return {name: KNOWN_WITHOUT_VALUES.get(name) or _dispatch(name, f) for name, f in functions.items()}


def _dispatch(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_symbolic((args, kwargs)):
            return apply_symbolic(name, args, kwargs)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call
