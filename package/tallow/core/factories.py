"""The arguments that all functions have that create a tensor: `layout`, `out` and `pin_memory`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tallow.core.whole_calls import note_whole
from tallow.core.write_out import resize_out, write_out
from tallow.errors import ArgumentTypeError, DtypeError
from tallow.ops.memory_format import layout, strided
from tallow.tape.modes import mode

F = TypeVar("F", bound=Callable[..., Any])
KEYWORDS = ("layout", "out", "pin_memory")


def creates(function: F) -> F:
    """Let a function that creates a tensor take the keywords `layout`, `out` and `pin_memory`.

    With `out` the tensor is written to it, and has its dtype. Pinned memory speeds up copies to a GPU; without a GPU
    `pin_memory` changes nothing.
    """
    are_absent = frozenset(KEYWORDS).isdisjoint

    @wraps(function)
    def creating(*args: Any, **kwargs: Any) -> Any:
        if mode.tracer is not None:
            return mode.tracer.whole(creating, args, kwargs)
        if not kwargs:
            return function(*args)
        if are_absent(kwargs):
            return function(*args, **kwargs)
        order, out, is_pinned = (kwargs.pop(name, None) for name in KEYWORDS)
        if order is not None and order is not strided:
            what = "is not supported" if isinstance(order, layout) else "is no layout"
            raise ArgumentTypeError(f"{function.__name__}: layout={order!r} {what}", hint="pass tl.strided")
        requires_grad = kwargs.pop("requires_grad", False)
        result = function(*args, **kwargs) if out is None else _into(out, function, args, kwargs)
        if is_pinned:
            result = result.pin_memory()
        return result.requires_grad_(requires_grad) if requires_grad else result

    note_whole(function)
    creating.takes_out = True  # type: ignore[attr-defined]  # `public` leaves it to this function
    return creating  # type: ignore[return-value]


def _into(out: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Create a tensor of the dtype and on the device of `out`, and write it there."""
    name, dtype = function.__name__, kwargs.get("dtype")
    if dtype is not None and dtype != out.dtype:
        raise DtypeError(f"{name}: dtype {dtype} does not match dtype of out ({out.dtype})", hint="pass one of both")
    if kwargs.get("device") is None:
        kwargs["device"] = out.device
    result = function(*args, **kwargs | {"dtype": out.dtype})
    resize_out(out, result.shape)
    return write_out(out, result, name)
