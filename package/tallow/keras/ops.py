"""`keras.ops`: functions of tensors, and of symbolic tensors, for which they make layers.

    y = keras.ops.softmax(keras.ops.matmul(q, keras.ops.transpose(k, (0, 2, 1))))

Axes, names and defaults are NumPy's, as in Keras; see `tallow.keras.functions` for what each does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tallow.keras.functions import FUNCTIONS
from tallow.keras.layers.operator import applied
from tallow.keras.symbolic import KerasTensor, is_symbolic
from tallow.names import names_of


def _for_both(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_symbolic((args, kwargs)):
            return applied(name, args, kwargs)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def shape(x: Any) -> tuple[Any, ...]:
    """The sizes; of a symbolic tensor with None where any fits."""
    return x.shape if isinstance(x, KerasTensor) else FUNCTIONS["shape"](x)


def ndim(x: Any) -> int:
    return x.ndim if isinstance(x, KerasTensor) else FUNCTIONS["ndim"](x)


_OFFERED = {name: _for_both(name, function) for name, function in FUNCTIONS.items() if name not in ("shape", "ndim")}

__all__ = ["ndim", "shape"]
__all__ += list(_OFFERED)

__getattr__, __dir__ = names_of(__name__, offered=_OFFERED)
