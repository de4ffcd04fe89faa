"""Roles of an op's parameters: operand, index or attribute.

An array function's annotations are read once, when the op is created. Strings are evaluated in the function's module,
so `from __future__ import annotations` makes no difference.

| annotation | role |
| --- | --- |
| `Array`, `np.ndarray`, `NDArray[...]`, `cupy.ndarray`, `Tensor` | an operand |
| one of these `\\| None`, `Optional[...]` | an operand that may be absent |
| one of these `\\| float`, `\\| Scalar` | an operand that may be a Python number |
| `Sequence[...]`, `list[...]`, `tuple[..., ...]` of one of these | any number of operands |
| `Index` | an array that is passed unchanged and has no gradient |
| any other class, `Literal`, `Callable`, unions and sequences of them | an attribute |
| none, without a default, before the `*` | an operand that may be a Python number |
| none, with a default or after the `*` | an attribute |
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from enum import Enum, auto
from inspect import CO_VARARGS, CO_VARKEYWORDS, signature
from inspect import Parameter as Declared
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import numpy as np

from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError

Index = Annotated[Any, "Index"]  # an array of indices or booleans
Ints = Annotated[Sequence[int], "Ints"]  # the last parameter of this type may be spread: x.permute(0, 2, 1)

REQUIRED = Declared.empty  # in place of a default
NUMBERS = (bool, int, float, complex, np.generic)
SEQUENCES = (Sequence, list, tuple)
ACCEPTED = (
    "write np.ndarray, NDArray[...], Tensor, or Array of tallow.ops.table for an operand, `| None` if it may be "
    "absent, `| float` if it may be a number, Sequence[Array] for several; Index of tallow.ops.table for indices and "
    "masks; int, float, str, list[int] or another class for an attribute"
)


class Role(Enum):
    """The kind of value a parameter takes."""

    OPERAND = auto()
    OPERANDS = auto()  # a sequence of any length
    INDEX = auto()
    INTS = auto()  # an attribute that may be spread if it is the last parameter
    ATTRIBUTE = auto()


class Form(NamedTuple):
    """The meaning of an annotation: whether an operand may be None, and whether it may be a Python number."""

    role: Role
    is_optional: bool = False
    takes_numbers: bool = False


class Parameter(NamedTuple):
    """One parameter of an op's array function."""

    name: str
    role: Role
    is_optional: bool  # may be None, whatever the default
    takes_numbers: bool  # an operand that may be a Python number, or an attribute that is one
    default: Any  # REQUIRED if there is none
    is_keyword_only: bool
    annotation: Any  # as written; REQUIRED if there is none

    @property
    def is_operand(self) -> bool:
        """True for an operand or a sequence of operands."""
        return self.role in OPERANDS

    @property
    def is_attribute(self) -> bool:
        """True for an attribute, spread or not."""
        return self.role in ATTRIBUTES


OPERANDS = (Role.OPERAND, Role.OPERANDS)
ATTRIBUTES = (Role.INTS, Role.ATTRIBUTE)
OPERAND = Form(Role.OPERAND)
ATTRIBUTE = Form(Role.ATTRIBUTE)
UNANNOTATED = Form(Role.OPERAND, takes_numbers=True)
MARKED = {Array: OPERAND, Index: Form(Role.INDEX), Ints: Form(Role.INTS)}
WORDS = {
    "Array": Array,
    "Index": Index,
    "Ints": Ints,
    "Scalar": Scalar,
}  # known even if imported for type checkers only
_OWN: dict[str, Form | None] = {}  # annotations in tallow's op modules mean the same everywhere: parsed once


def parameters_of(function: Callable[..., Any], name: str) -> tuple[Parameter, ...]:
    """Return the parameters of an array function, in order; keyword-only ones come last.

    Raises: ArgumentError for an annotation that does not determine whether there is a gradient, for a keyword-only
        operand, for `*args` and `**kwargs`, and if no parameter is an operand.
    """
    parameters = tuple(_parameter(name, function, *declared) for declared in _declarations(function, name))
    if not any(p.is_operand for p in parameters):
        raise ArgumentError(f"op {name}: no parameter is an operand, so nothing can have a gradient", hint=ACCEPTED)
    return parameters


def _declarations(function: Callable[..., Any], name: str) -> list[tuple[str, Any, bool, Any]]:
    """Return name, default, whether it is keyword-only, annotation. `inspect.signature` takes ten times as long."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        described = signature(function).parameters.values()
        if any(p.kind in (Declared.VAR_POSITIONAL, Declared.VAR_KEYWORD) for p in described):
            raise _variable(name)
        return [(p.name, p.default, p.kind is Declared.KEYWORD_ONLY, p.annotation) for p in described]
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        raise _variable(name)
    try:
        annotations = function.__annotations__
    except NameError as error:  # Python 3.14 and later evaluate annotations on access
        raise ArgumentError(f"op {name}: an annotation cannot be read: {error}", hint=ACCEPTED) from error
    count, defaults = code.co_argcount, function.__defaults__ or ()
    before = count - len(defaults)
    declared = [
        (p, defaults[i - before] if i >= before else REQUIRED, False, annotations.get(p, REQUIRED))
        for i, p in enumerate(code.co_varnames[:count])
    ]
    if code.co_kwonlyargcount:
        keywords = function.__kwdefaults__ or {}
        declared += [
            (p, keywords.get(p, REQUIRED), True, annotations.get(p, REQUIRED))
            for p in code.co_varnames[count : count + code.co_kwonlyargcount]
        ]
    return declared


def _variable(name: str) -> ArgumentError:
    return ArgumentError(
        f"op {name}: an array function cannot take *args or **kwargs",
        hint="name each parameter; Sequence[Array] takes any number of operands",
    )


def _parameter(
    op: str, function: Callable[..., Any], name: str, default: Any, only: bool, annotation: Any
) -> Parameter:
    if annotation is REQUIRED:
        form = UNANNOTATED if default is REQUIRED and not only else ATTRIBUTE
    else:
        form = _form_of_written(annotation, function, f"op {op}: parameter {name!r}")
        if only and form.role in OPERANDS:
            raise ArgumentError(
                f"op {op}: parameter {name!r} is an operand and keyword-only",
                hint="move it before the `*`: gradients belong to operands by their position",
            )
    is_optional = form.is_optional or (default is None and form.role is Role.OPERAND)  # `bias: Array = None`
    return Parameter(name, form.role, is_optional, form.takes_numbers, default, only, annotation)


def _form_of_written(annotation: Any, function: Callable[..., Any], where: str) -> Form:
    is_own = isinstance(annotation, str) and function.__module__.startswith("tallow.ops.")
    if is_own and annotation in _OWN:
        form = _OWN[annotation]
    else:
        form = form_of(_evaluate(annotation, function, where) if isinstance(annotation, str) else annotation)
        if is_own:
            _OWN[annotation] = form
    if form is None:
        raise ArgumentError(f"{where}: {annotation!s} does not say whether it is an operand", hint=ACCEPTED)
    return form


def _evaluate(text: str, function: Callable[..., Any], where: str) -> Any:
    names = getattr(function, "__globals__", {})
    try:
        return eval(text, {**vars(builtins), **WORDS, **names})
    except Exception as error:  # the expression may raise anything, usually for a missing name
        raise ArgumentError(
            f"{where}: the annotation {text!r} cannot be read: {error}",
            hint=f"import its names at the top of the module, outside of TYPE_CHECKING; or {ACCEPTED}",
        ) from error


def form_of(annotation: Any) -> Form | None:
    """Return the meaning of an annotation, or None if it is not understood."""
    if annotation is Any:
        return None
    if annotation is None or annotation is NoneType:
        return Form(Role.ATTRIBUTE, is_optional=True)
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return _form_of_class(annotation)
    try:
        if annotation in MARKED:
            return MARKED[annotation]
    except TypeError:  # not hashable
        pass
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return form_of(inner[0])
    if origin is Union or origin is UnionType:
        return _form_of_union([form_of(member) for member in inner])
    if origin is Literal or origin is Callable:
        return ATTRIBUTE
    if isinstance(origin, type):
        return _form_of_generic(origin, [form_of(x) for x in inner if x is not Ellipsis])
    if isinstance(annotation, TypeVar):
        members = annotation.__constraints__ or (annotation.__bound__ or Any,)
        return _form_of_union([form_of(member) for member in members])
    for alias_of in ("__value__", "__supertype__"):  # `type X = ...` and NewType
        if hasattr(annotation, alias_of):
            return form_of(getattr(annotation, alias_of))
    return None


def _form_of_class(kind: type) -> Form | None:
    if hasattr(kind, "__dlpack__"):  # NumPy's, CuPy's and tallow's arrays have it, scalars do not
        return OPERAND
    if issubclass(kind, NUMBERS):
        return Form(Role.ATTRIBUTE, takes_numbers=True)
    may_be_array = hasattr(kind, "__array__") or getattr(kind, "_is_protocol", False)
    return None if may_be_array or kind in SEQUENCES else ATTRIBUTE


def _form_of_generic(origin: type, inner: list[Form | None]) -> Form | None:
    """`NDArray[...]`, `Sequence[Array]`, `dict[str, int]`."""
    kind = form_of(origin)
    if kind == OPERAND:
        return OPERAND
    if kind is None and origin not in SEQUENCES:
        return None
    if origin in SEQUENCES and (not inner or None in inner):
        return None
    if origin in SEQUENCES and all(form == OPERAND for form in inner):
        return Form(Role.OPERANDS)
    return ATTRIBUTE if all(form is None or form.role in ATTRIBUTES for form in inner) else None


def _form_of_union(forms: list[Form | None]) -> Form | None:
    if any(form is None for form in forms):
        return None
    understood = [form for form in forms if form is not None]
    is_optional, takes_numbers = any(f.is_optional for f in understood), any(f.takes_numbers for f in understood)
    arrays = {f.role for f in understood}.difference(ATTRIBUTES)
    if not arrays:
        role = understood[0].role if len(understood) == 1 else Role.ATTRIBUTE
        return Form(role, is_optional, takes_numbers)
    others = [f for f in understood if f.role not in arrays]
    if len(arrays) > 1 or not all(f.is_optional or f.takes_numbers for f in others):
        return None
    (role,) = arrays
    return None if role is Role.OPERANDS and others else Form(role, is_optional, takes_numbers)
