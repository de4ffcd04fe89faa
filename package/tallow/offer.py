"""Offering ops where PyTorch has them: as functions, methods, in-place methods and operators.

Each op says in its decorator where it belongs; a function of tensors that is composed of ops says so by `@offer`. Both
end in one table, from which `tallow`, `tallow.nn.functional`, `tallow.linalg` and the class `Tensor` are filled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tallow.apply import apply, apply_inplace, binary_operator
from tallow.errors import ArgumentError
from tallow.ops.table import OPS, PLACES, Op, op
from tallow.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

OFFERED: dict[str, dict[str, Callable[..., Any]]] = {place: {} for place in PLACES if place != "F_"}

OPERATORS = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__matmul__": "matmul",
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
}
UNARY_OPERATORS = {"__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__invert__": "bitwise_not"}
COMMUTATIVE = {"add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"}


def offer(places: str, *names: str, name: str | None = None) -> Callable[[F], F]:
    """Offer a function of tensors at `places`, under its own name, or `name` instead, and any further `names`.

    At "Tensor_" the function is expected to write into its first argument, and its name to end in an underscore.
    """

    def put(function: F) -> F:
        for place in places.split():
            for public in (name or function.__name__, *names):
                _put(place, public, function)
        return function

    return put


def _put(place: str, name: str, function: Callable[..., Any]) -> None:
    if place == "linalg":
        name = name.removeprefix("linalg_")
    if name in OFFERED[place]:
        raise ArgumentError(f"{name} is offered at {place} already", mend="choose another name")
    OFFERED[place][name] = function
    if place in ("Tensor", "Tensor_"):
        setattr(Tensor, name, function)


def function_of(made: Op) -> Callable[..., Any]:
    """The public function of an op."""

    def function(*args: Any, out: Tensor | None = None, **kwargs: Any) -> Any:
        value = apply(made, *args, **kwargs)
        return value if out is None else out.copy_(value)

    return _named(function, made, made.name)


def inplace_function_of(made: Op) -> Callable[..., Any]:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return apply_inplace(made, input, *args, **kwargs)

    return _named(function, made, made.name + "_")


def choosing_function_of(made: Op) -> Callable[..., Any]:
    """As `function_of`, with a last argument `inplace`."""
    number_of_arguments = len(made.names)

    def function(*args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if len(args) > number_of_arguments:
            *args, inplace = args  # type: ignore[assignment]
        return (apply_inplace if inplace else apply)(made, *args, **kwargs)

    return _named(function, made, made.name)


def _named(function: F, made: Op, name: str) -> F:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = made.function.__doc__
    function.__module__ = made.function.__module__
    function.__wrapped__ = made.function  # type: ignore[attr-defined]  # inspect.signature follows it
    return function


def offer_op(made: Op) -> Callable[..., Any]:
    """Offer an op at the places it names, and return its public function."""
    function = function_of(made)
    for place in made.places:
        for name in (made.name, *made.aliases):
            if place == "Tensor_":
                _put(place, name + "_", inplace_function_of(made))
            elif place == "F_":
                _put("F", name, choosing_function_of(made))
                _put("F", name + "_", inplace_function_of(made))
            else:
                _put(place, name, function)
    return function


def _reflected(made: Op) -> Callable[[Tensor, Any], Any]:
    def operator(self: Tensor, other: Any) -> Any:
        return apply(made, other, self) if isinstance(other, int | float) else NotImplemented

    return operator


def _inplace(made: Op) -> Callable[[Tensor, Any], Tensor]:
    def operator(self: Tensor, other: Any) -> Tensor:
        return apply_inplace(made, self, other)

    return operator


def offer_operators() -> None:
    for dunder, name in OPERATORS.items():
        made = OPS[name]
        plain = binary_operator(made)
        setattr(Tensor, dunder, plain)
        if dunder not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            setattr(Tensor, "__r" + dunder[2:], plain if name in COMMUTATIVE else _reflected(made))
            if name != "matmul":
                setattr(Tensor, "__i" + dunder[2:], _inplace(made))
    for dunder, name in UNARY_OPERATORS.items():
        setattr(Tensor, dunder, OFFERED["Tensor"][name])


def user_op(places: Any = "", **options: Any) -> Any:
    """Make an op of your own from a function of arrays; the decorator that tallow's own ops are made by.

    The function returns its value and a closure that turns the gradient of the value into those of the operands; see
    `tallow.ops.table` for the contract, and `places` to offer it as a method too.

    Example:
        >>> import tallow as tl
        >>> @tl.op
        ... def cube(x):
        ...     def backward(g):
        ...         return (3 * x * x * g,)
        ...     return x**3, backward
        >>> x = tl.tensor(2.0, requires_grad=True)
        >>> _ = cube(x).backward()
        >>> x.grad
        tensor(12.)
    """
    if callable(places):
        return offer_op(op("")(places))
    return lambda function: offer_op(op(places, **options)(function))
