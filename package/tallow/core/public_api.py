"""The public API: publish ops as functions, methods, in-place methods and operators, where PyTorch has them.

An op names its places in the `@op` decorator; a function composed of ops names them in `@public`. Both end up in one
table, `PUBLIC`, from which `tallow`, `tallow.nn.functional`, `tallow.linalg` and the class `Tensor` are filled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import CodeType, NoneType
from typing import Any, TypeVar

from tallow.core import subclasses as subclasses  # gives Tensor what its subclasses inherit
from tallow.core.arguments import check_type
from tallow.core.overrides import after_failure
from tallow.core.short_source import Form
from tallow.core.short_way import short_way, source
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import unrecorded
from tallow.core.write_out import write_out
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.ops.table import CHECKED, OPS, PLACES, Op, aliases_of
from tallow.ops.table import op as register_op
from tallow.tape.modes import mode

F = TypeVar("F", bound=Callable[..., Any])

# Place -> public name -> function. In-place and `inplace=` forms share the table of their place.
PUBLIC: dict[str, dict[str, Callable[..., Any]]] = {place: {} for place in PLACES if place not in ("tl_", "F_")}

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
# Op -> the op that gives the same value with its operands exchanged, for the reflected operators.
EXCHANGED = {"add": "add", "mul": "mul", "sub": "rsub"} | {b: b for b in ("bitwise_and", "bitwise_or", "bitwise_xor")}


def public(places: str, *names: str, name: str | None = None, checked: bool = False) -> Callable[[F], F]:
    """Publish a function of tensors at `places` (see `PLACES`) under its own name and the aliases `names`.

    At "Tensor_" the function must write into its first argument, and its name must end in an underscore.

    Args:
        name: the public name, where it differs from the function's own.
        checked: refuse arguments whose types are not those of the annotations, as ops do. It costs a short function
            more than its work, so those that are called often check by their code.
    """

    def register(function: F) -> F:
        is_operator = function.__name__.startswith("__")  # Python calls it by position
        published = function if is_operator else _accept_numpy_keywords(function, checked)
        if published is not function:
            published.__name__ = name or function.__name__
            _find_at(places.split()[0], published.__name__, published)
        for place in places.split():
            for public_name in (name or function.__name__, *names):
                _register(place, public_name, published)
        return function

    return register


def _accept_numpy_keywords(function: F, checked: bool = False) -> F:
    """Wrap a function so that it takes `axis` for `dim` and so on, and `out` if it returns tensors, as in PyTorch."""
    code: CodeType = getattr(function, "__wrapped__", function).__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # inspect.signature would slow down import
    by_position = own[: code.co_argcount]
    aliases = aliases_of(own)
    takes_out = "out" in own or hasattr(function, "takes_out")
    if not checked and not aliases and (takes_out or "Tensor" not in str(function.__annotations__.get("return"))):
        return function
    if checked:
        function = _checking(function, by_position)
    are_own = aliases.keys().isdisjoint
    while_unrecorded = unrecorded(function)

    @wraps(function)
    def renaming(*args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                return while_unrecorded(*args) if mode.tracer is None else function(*args)
            if not are_own(kwargs):
                renamed = {aliases.get(k, k): v for k, v in kwargs.items()}
                if len(renamed) < len(kwargs):
                    raise ArgumentTypeError(f"{function.__name__}() got one argument by two names: {', '.join(kwargs)}")
                kwargs = renamed
            if takes_out or (out := kwargs.pop("out", None)) is None:
                return function(*args, **kwargs)
            return write_out(out, function(*args, **kwargs), function.__name__, operands=(*args, *kwargs.values()))
        except Exception as error:
            try:
                return after_failure(renaming, args, kwargs)
            except Exception as final:
                # Of an argument of the wrong type, PyTorch says so first. An argument that answers has its own error.
                if final is error and not isinstance(error, TypeError):
                    _check_types(renaming, _types_of(renaming), by_position, args, kwargs)
                raise

    return renaming  # type: ignore[return-value]


def _checking(function: F, names: tuple[str, ...]) -> F:
    """Wrap a function so that it refuses arguments of other types than its annotations name."""
    checks = _types_of(function)

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        _check_types(function, checks, names, args, kwargs)
        return function(*args, **kwargs)

    return checking  # type: ignore[return-value]


def _types_of(function: Callable[..., Any]) -> dict[str, tuple[type, ...]]:
    """Return the types that the parameters of a function take, of those whose annotations decide it."""
    kinds = CHECKED | {"Tensor": (Tensor,), "Tensor | None": (Tensor, NoneType)}
    return {name: types for name, kind in function.__annotations__.items() if (types := kinds.get(kind)) is not None}


def _check_types(
    function: Callable[..., Any],
    checks: dict[str, tuple[type, ...]],
    names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Raise ArgumentTypeError for an argument of another type than those of `checks`."""
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        if (types := checks.get(name)) is not None and type(value) not in types:
            check_type(function.__name__, name, value, types)


def _find_at(place: str, name: str, function: Callable[..., Any]) -> None:
    """Give a function the module and the qualified name by which pickle finds it: those of one of its places."""
    function.__module__ = {"F": "tallow.nn.functional", "linalg": "tallow.linalg", "special": "tallow.special"}.get(
        place, "tallow"
    )
    name = name.removeprefix("linalg_") if place == "linalg" else name
    function.__qualname__ = f"Tensor.{name}" if place in ("Tensor", "Tensor_") else name


def _register(place: str, name: str, function: Callable[..., Any]) -> None:
    if place == "linalg":
        name = name.removeprefix("linalg_")
    if name in PUBLIC[place]:
        raise ArgumentError(f"{name} already exists at {place}", hint="choose another name")
    PUBLIC[place][name] = function
    if place in ("Tensor", "Tensor_"):
        setattr(Tensor, name, function)


def function_of(op: Op) -> Callable[..., Any]:
    """Return the public function of an op, with PyTorch's argument `out`."""
    op.call = _describe(short_way(op), op, op.name)
    return op.call


def listed_function_of(op: Op) -> Callable[..., Any]:
    """Return the public function of an op that takes its last argument as a list of integers only."""
    if op.listed is None:
        op.listed = _describe(short_way(op, Form.listed), op, op.name)
    return op.listed


def inplace_function_of(op: Op) -> Callable[..., Any]:
    """Return the public function of an op that writes its value into its first operand."""
    if op.inplace is None:
        op.inplace = _describe(short_way(op, Form.inplace), op, op.name + "_")
    return op.inplace


def optional_inplace_function_of(op: Op) -> Callable[..., Any]:
    """Return the public function of an op with PyTorch's last argument `inplace`."""
    op.optional_inplace = _describe(short_way(op, Form.optional_inplace), op, op.name)
    return op.optional_inplace


def _describe(function: F, op: Op, name: str) -> F:
    """Give a public function its name, and the docstring, module and signature of the op's array function."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.function.__doc__
    function.__module__ = op.function.__module__
    function.__wrapped__ = op.function  # type: ignore[attr-defined]  # inspect.signature follows it
    return function


def publish_op(op: Op) -> Callable[..., Any]:
    """Publish an op at the places it names, and return its public function."""
    function = function_of(op)
    is_own = op.function.__module__.startswith("tallow.")  # pickle finds a user's function in the user's module
    named: list[Callable[..., Any]] = []

    def publish(place: str, name: str, published: Callable[..., Any]) -> None:
        _register(place, name, published)
        if is_own and published not in named:
            _find_at(place, name, published)
            named.append(published)

    for place in op.places:
        for name in (op.name, *op.aliases):
            if place == "Tensor_":
                publish(place, name + "_", inplace_function_of(op))
            elif place == "tl_":
                publish("tl", name + "_", inplace_function_of(op))
            elif place == "F_":
                publish("F", name, optional_inplace_function_of(op))
                publish("F", name + "_", inplace_function_of(op))
            elif op.spread is not None and place != "Tensor":
                publish(place, name, listed_function_of(op))
            else:
                publish(place, name, function)
    return function


def publish_operators() -> None:
    """Define the operators of Tensor: `a + b`, `2 - a`, `a += b`, `-a` and so on."""
    for dunder, name in OPERATORS.items():
        op = OPS[name]
        setattr(Tensor, dunder, _operator(op, Form.operator, dunder))
        if dunder not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            exchanged = EXCHANGED.get(name)
            reflected, form = (op, Form.reflected) if exchanged is None else (OPS[exchanged], Form.operator)
            setattr(Tensor, "__r" + dunder[2:], _operator(reflected, form, "__r" + dunder[2:]))
            if name != "matmul":
                setattr(Tensor, "__i" + dunder[2:], inplace_function_of(op))
    for prefix in ("", "r", "i"):  # names of Python 2, which PyTorch has kept
        setattr(Tensor, f"__{prefix}div__", vars(Tensor)[f"__{prefix}truediv__"])
    for dunder, name in UNARY_OPERATORS.items():
        setattr(Tensor, dunder, PUBLIC["Tensor"][name])


def _operator(op: Op, form: Form, name: str) -> Callable[..., Any]:
    function = short_way(op, form)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.function.__doc__
    return function


def user_op(places: Any = "", **options: Any) -> Any:
    """Make an op from a function of arrays. tallow's own ops are made with the same decorator.

    The function returns its value and a closure that maps the gradient of the value to the gradients of the operands;
    `tallow.ops.table` describes the contract. Operands are the parameters that are annotated as arrays, and those with
    neither an annotation nor a default; see `tallow.ops.parameters`.

    Args:
        places: where else to publish the op, such as "Tensor" for a method; words of `tallow.ops.table.PLACES`.
        options: as for `tallow.ops.table.op`; `reads_per_operand` is False unless given, because nothing checks it.

    Raises: ArgumentError for a parameter whose annotation leaves open whether it is an operand.

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
    options.setdefault("reads_per_operand", False)
    if callable(places):
        return publish_op(register_op("", **options)(places))
    return lambda function: publish_op(register_op(places, **options)(function))


user_op.source = source  # type: ignore[attr-defined]  # tl.op.source("softmax")
