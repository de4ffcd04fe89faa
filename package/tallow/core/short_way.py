"""The short way from a call to the array code: one function for each op, generated at its first call.

Most calls of an op need nothing of what the general way in `tallow.core.apply` can do: their operands are tensors of
one dtype on the CPU, so nothing has to be moved, converted or looked up by name. What such a call does need is known
from the op's entry in the table. `tallow.core.short_source` writes it down as Python source: one condition that says
whether a call is such a call, the call of the array function, and the making of the result. Every other call, and every
call that fails, goes the general way, which raises the errors.

    tl.op.source("softmax")      return the source of an op's function
    use_general_way()            let the functions of all ops go the general way only, to test it
    replace_functions(through)   let the functions of all ops call `through`, to test another way

An op's function is made in three forms: the function itself (`tl.add`, `Tensor.add`), in place (`Tensor.add_`), and as
an operator (`a + b`). A form is an empty function until its first call, so that no source is generated at import. The
first call puts the code into that same function, and whoever holds it gets the short way.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Callable
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tallow.autograd.graph import Node, note_write
from tallow.autograd.modes import INFERENCE, RECORDING, mode
from tallow.core import apply as general_way
from tallow.core.arguments import CONVERTED, F32, F64
from tallow.core.overrides import overridden
from tallow.core.short_source import ABSENT, FUNCTION, LITERALS, Form, source_of, ufunc_of
from tallow.core.tensor import Tensor
from tallow.core.write_out import write_out
from tallow.errors import ArgumentError
from tallow.ops.float_warnings import restore_warnings, suppress_warnings
from tallow.ops.table import OPS, Op

_forms: dict[tuple[str, str], FunctionType] = {}  # (name of op, name of form) -> its function
_is_general = False


def short_way(op: Op, form: Form = FUNCTION) -> Callable[..., Any]:
    """Return the function of an op in a form; its code is generated at the first call."""
    namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}
    function = FunctionType(_EMPTY, namespace, op.name)
    namespace["first_call"] = partial(_first_call, function, op, form)
    _forms[op.name, form.name] = function
    return function


def source(name: str, form: str = "function") -> str:
    """Return the generated source of an op's function.

    Args:
        name: the op's name, such as "softmax".
        form: "function", "inplace", "optional_inplace", "operator" or "reflected".

    Raises: ArgumentError for an op that does not exist, or has no such form.
    """
    if name not in OPS or (name, form) not in _forms:
        raise ArgumentError(f"no op {name!r} has the form {form!r}", hint="see tallow.ops.OPS for the names")
    return source_of(OPS[name], Form(form))


def use_general_way() -> None:
    """Let the functions of all ops go the general way only, from now on."""
    global _is_general
    _is_general = True
    for (name, form), function in _forms.items():
        if name in OPS:
            _complete(function, OPS[name], Form(form))


def replace_functions(through: Callable[..., Any]) -> None:
    """Let the functions of all ops return `through(form, function, *args, **kwargs)` from now on.

    Args:
        through: gets the form, the function that does the work, and the arguments of the call; not while
            `tl.compile` records, because the work is then recorded.
    """
    for (name, form), function in _forms.items():
        if name in OPS:
            _complete(function, OPS[name], Form(form))
            original = FunctionType(function.__code__, function.__globals__, name, function.__defaults__)
            original.__kwdefaults__ = function.__kwdefaults__
            function.__globals__["first_call"] = partial(_unless_recorded, through, Form(form), original)
            function.__code__, function.__defaults__, function.__kwdefaults__ = _EMPTY, None, None


def _unless_recorded(through: Callable[..., Any], form: Form, function: FunctionType, *args: Any, **kwargs: Any) -> Any:
    return through(form, function, *args, **kwargs) if mode.tracer is None else function(*args, **kwargs)


def _empty(*args: Any, **kwargs: Any) -> Any:
    return first_call(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821 - in the namespace of each function


_EMPTY: CodeType = _empty.__code__


def _first_call(function: FunctionType, op: Op, form: Form, *args: Any, **kwargs: Any) -> Any:
    _complete(function, op, form)
    return function(*args, **kwargs)


def _complete(function: FunctionType, op: Op, form: Form) -> None:
    """Put the generated code into a function."""
    text = source_of(op, form, only_general=_is_general)
    filename = f"<tallow op {op.name}, {form.name}>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace = function.__globals__
    namespace.update(RUNTIME)
    namespace.update(op=op, of_arrays=op.function, small=op.small, LIMIT=op.limit)
    namespace.update(ufunc=ufunc_of(op), defaults=op.all_defaults)
    made: dict[str, FunctionType] = {}
    exec(compile(text, filename, "exec"), namespace, made)
    (generated,) = made.values()
    function.__defaults__, function.__kwdefaults__ = generated.__defaults__, generated.__kwdefaults__
    function.__code__ = generated.__code__


# ------------------------------------------------------------------------------- what the generated functions call


def generally(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Apply an op the general way; PyTorch's argument `out` may be among the keywords."""
    out = keywords.pop("out", None)
    args, kwargs = _as_called(op, given, keywords)
    try:
        value = general_way.apply_generally(op, *args, **kwargs)
    except Exception:
        return _overridden(op.call, args, kwargs)
    return value if out is None else write_out(out, value, op.name)


def inplace_generally(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
    """Apply an op the general way and write into its first operand."""
    args, kwargs = _as_called(op, given, keywords)
    try:
        return general_way.inplace_generally(op, *args, **kwargs)
    except Exception:
        return _overridden(op.inplace, args, kwargs)


def optionally_inplace(op: Op, given: tuple[Any, ...], keywords: dict[str, Any], inplace: bool) -> Any:
    """Apply an op that has an argument `inplace`."""
    args, kwargs = _as_called(op, given, keywords)
    try:
        return general_way.apply_inplace(op, *args, **kwargs) if inplace else general_way.apply(op, *args, **kwargs)
    except Exception:
        return _overridden(
            _forms[op.name, Form.optional_inplace.name], args, kwargs | ({"inplace": True} if inplace else {})
        )


def operator_generally(op: Op, *operands: Any) -> Any:
    """Apply an operator. Return NotImplemented, so that Python asks the other type, for operands of unknown types."""
    converted = [general_way.as_operand(x) for x in operands]
    return NotImplemented if any(x is None for x in converted) else general_way.apply(op, *converted)


def _overridden(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Return what an argument makes of a call that has just failed. Raises: the error, if none has a say in it."""
    result = overridden(function, tuple(args), kwargs)
    if result is NotImplemented:
        raise  # noqa: PLE0704 - the error that the caller handles
    return result


def _as_called(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as if only what differs from a default were given, by name after an absent one."""
    defaults = op.all_defaults
    args = list(given)
    kwargs = {k: v for k, v in keywords.items() if v is not ABSENT and not _is_same(v, defaults.get(k, ABSENT))}
    while args and len(args) <= len(op.defaults):
        if args[-1] is not ABSENT and not _is_same(args[-1], op.defaults[len(args) - 1]):
            break
        args.pop()
    first = next((i for i, x in enumerate(args) if x is ABSENT), len(args))
    for name, value, default in zip(op.names[first:], args[first:], op.defaults[first:], strict=False):
        if value is not ABSENT and not _is_same(value, default):
            kwargs[name] = value
    return args[:first], kwargs


def _is_same(value: Any, default: Any) -> bool:
    """Return whether a value is a default, or an equal literal of the same type."""
    return value is default or (type(value) in LITERALS and type(value) is type(default) and value == default)


RUNTIME: dict[str, Any] = {
    "ABSENT": ABSENT,
    "CONVERTED": CONVERTED,
    "F32": F32,
    "F64": F64,
    "I32": np.dtype(np.int32),
    "I64": np.dtype(np.int64),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
    "INFERENCE": INFERENCE,
    "NO_KEYWORDS": {},
    "Node": Node,
    "RECORDING": RECORDING,
    "Tensor": Tensor,
    "are_arrays": general_way.are_arrays,
    "arrays_of": general_way.arrays_of,
    "asarray": np.asarray,
    "generally": generally,
    "generic": np.generic,
    "inplace_generally": inplace_generally,
    "is_writable": general_way.is_writable,
    "modes": mode,
    "ndarray": np.ndarray,
    "needs_gradient": general_way.needs_gradient,
    "new": object.__new__,
    "note_write": note_write,
    "operator_generally": operator_generally,
    "optionally_inplace": optionally_inplace,
    "outputs_of": general_way.outputs_of,
    "record": general_way.record,
    "restore_warnings": restore_warnings,
    "suppress_warnings": suppress_warnings,
    "views_of": general_way.views_of,
}
