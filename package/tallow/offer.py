"""Offering ops where PyTorch has them: as functions, methods, in-place methods and operators.

Each op says in its decorator where it belongs; a function of tensors that is composed of ops says so by `@offer`. Both
end in one table, from which `tallow`, `tallow.nn.functional`, `tallow.linalg` and the class `Tensor` are filled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from types import CodeType
from typing import Any, TypeVar

from tallow.apply import apply, apply_inplace, as_operand, binary_operator
from tallow.autograd.modes import mode
from tallow.dtypes import can_cast
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, GraphError, ShapeError
from tallow.ops.table import ALIASES, OPS, PLACES, Op, op
from tallow.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

OFFERED: dict[str, dict[str, Callable[..., Any]]] = {place: {} for place in PLACES if place not in ("tl_", "F_")}

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
# The value alone of those ops that are one ufunc, for when nothing is recorded.
PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "rsub": lambda a, b: b - a,
    "mul": operator.mul,
    "div": operator.truediv,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNARY_OPERATORS = {"__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__invert__": "bitwise_not"}
# What an op is with its operands exchanged, where there is an op for that.
EXCHANGED = {"add": "add", "mul": "mul", "sub": "rsub"} | {b: b for b in ("bitwise_and", "bitwise_or", "bitwise_xor")}


def offer(places: str, *names: str, name: str | None = None) -> Callable[[F], F]:
    """Offer a function of tensors at `places`, under its own name, or `name` instead, and any further `names`.

    At "Tensor_" the function is expected to write into its first argument, and its name to end in an underscore.
    """

    def put(function: F) -> F:
        public = _taking_numpys_words(function)
        for place in places.split():
            for called in (name or function.__name__, *names):
                _put(place, called, public)
        return function

    return put


def _taking_numpys_words(function: F) -> F:
    """The function, called with `axis` for `dim` and the like where it has a `dim`, as PyTorch's are."""
    code: CodeType = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # inspect.signature would be felt at import
    aliases = {alias: name for alias, name in ALIASES.items() if name in own and alias not in own}
    if not aliases:
        return function

    @wraps(function)
    def renaming(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {aliases.get(k, k): v for k, v in kwargs.items()}
        return function(*args, **kwargs)

    return renaming  # type: ignore[return-value]


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

    def function(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        value = apply(made, *args, **kwargs)
        return value if out is None else _into(out, value, made.name)

    return _named(function, made, made.name)


def _into(out: Any, value: Any, name: str) -> Any:
    """Write a result to `out`, a tensor of its shape or an empty one, or a tuple of them for several outputs."""
    if isinstance(value, tuple):
        if not isinstance(out, tuple | list) or len(out) != len(value):
            raise ArgumentTypeError(f"{name}: out must be a tuple of {len(value)} tensors")
        made = [_into(o, v, name) for o, v in zip(out, value, strict=True)]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if mode.recording and (value.requires_grad or out.requires_grad):
        raise GraphError(
            f"{name}: functions with out=... don't support automatic differentiation, and an argument requires grad",
            mend="call it inside `with tl.no_grad():`, or without out",
        )
    if not can_cast(value.dtype, out.dtype):
        raise DtypeError(f"{name}: result type {value.dtype} can't be cast to the type {out.dtype} of out")
    if out.numel() == 0:
        out.data = value.to(out.dtype)
        return out
    if out.shape != value.shape:
        raise ShapeError(f"{name}: out has shape {tuple(out.shape)}, the result {tuple(value.shape)}")
    return out.copy_(value)


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
            elif place == "tl_":
                _put("tl", name + "_", inplace_function_of(made))
            elif place == "F_":
                _put("F", name, choosing_function_of(made))
                _put("F", name + "_", inplace_function_of(made))
            else:
                _put(place, name, function)
    return function


def _reflected(made: Op) -> Callable[[Tensor, Any], Any]:
    def operator(self: Tensor, other: Any) -> Any:
        operand = as_operand(other)
        return NotImplemented if operand is None else apply(made, operand, self)

    return operator


def _inplace(made: Op) -> Callable[[Tensor, Any], Tensor]:
    def operator(self: Tensor, other: Any) -> Tensor:
        return apply_inplace(made, self, other)

    return operator


def offer_operators() -> None:
    for dunder, name in OPERATORS.items():
        made = OPS[name]
        setattr(Tensor, dunder, binary_operator(made, PLAIN.get(name)))
        if dunder not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            exchanged = EXCHANGED.get(name)
            reflected = _reflected(made) if exchanged is None else binary_operator(OPS[exchanged], PLAIN.get(exchanged))
            setattr(Tensor, "__r" + dunder[2:], reflected)
            if name != "matmul":
                setattr(Tensor, "__i" + dunder[2:], _inplace(made))
    for dunder, name in UNARY_OPERATORS.items():
        setattr(Tensor, dunder, OFFERED["Tensor"][name])


def user_op(places: Any = "", **options: Any) -> Any:
    """Make an op of your own from a function of arrays; the decorator that tallow's own ops are made by.

    The function returns its value and a closure that turns the gradient of the value into those of the operands; see
    `tallow.ops.table` for the contract, and `places` to offer it as a method too. Its operands are the parameters that
    are annotated as arrays, and those that have neither an annotation nor a default; see `tallow.ops.parameters`.

    Raises: ArgumentError for a parameter of which the annotation does not say whether it is an operand.

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
