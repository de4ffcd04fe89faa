"""The short way from a call to the array code: one function for each op, generated at its first call.

Most calls of an op need nothing of what the general way in `tallow.core.apply` can do: their operands are tensors of
one dtype on the CPU, so nothing has to be moved, converted or looked up by name. What such a call does need is known
from the op's entry in the table. `tallow.core.short_source` writes it down as Python source: one condition that says
whether a call is such a call, the call of the array function, and the making of the result. Every other call, and every
call that fails, goes the general way, which raises the errors.

    tl.op.source("softmax")      return the source of an op's function
    use_general_way()            let the functions of all ops go the general way only, to test it
    replace_functions(through)   let the functions of all ops call `through`, to test another way
    divert_functions(through)    the same until its result is called; see `tallow.core.watching`

An op's function is made in three forms: the function itself (`tl.add`, `Tensor.add`), in place (`Tensor.add_`), and as
an operator (`a + b`). A form is an empty function until its first call, so that no source is generated at import. The
first call puts the code into that same function, and whoever holds it gets the short way.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from tallow.core.short_runtime import RUNTIME
from tallow.core.short_source import FUNCTION, Form, source_of
from tallow.errors import ArgumentError
from tallow.ops.float_warnings import without_warnings
from tallow.ops.table import OPS, Op
from tallow.tape.modes import mode

# (name of op, name of form) -> its functions: two for `a * b` and its reflected form, whose operands may be exchanged.
_forms: dict[tuple[str, str], list[tuple[Op, FunctionType]]] = {}
_is_general = False


def short_way(op: Op, form: Form = FUNCTION) -> Callable[..., Any]:
    """Return the function of an op in a form; its code is generated at the first call."""
    namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}
    function = FunctionType(_EMPTY, namespace, op.name)
    namespace["first_call"] = partial(_first_call, function, op, form)
    key = op.name, form.name
    _forms[key] = [*(entry for entry in _forms.get(key, ()) if entry[0] is op), (op, function)]
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
    for op, form, function in _functions():
        _complete(function, op, form)


def _functions() -> Iterator[tuple[Op, Form, FunctionType]]:
    """Yield the functions of the ops in the table, with the op and the form."""
    for (name, form), functions in _forms.items():
        for op, function in functions:
            if OPS.get(name) is op:
                yield op, Form(form), function


def replace_functions(through: Callable[..., Any]) -> None:
    """Let the functions of all ops return `through(form, function, *args, **kwargs)` from now on.

    Args:
        through: gets the form, the function that does the work, and the arguments of the call; not while
            `tl.compile` records, because the work is then recorded.
    """
    for op, form, function in _functions():
        _complete(function, op, form)
        original = FunctionType(function.__code__, function.__globals__, op.name, function.__defaults__)
        original.__kwdefaults__ = function.__kwdefaults__
        function.__globals__["first_call"] = partial(_unless_recorded, through, form, original)
        function.__code__, function.__defaults__, function.__kwdefaults__ = _EMPTY, None, None


def _unless_recorded(through: Callable[..., Any], form: Form, function: FunctionType, *args: Any, **kwargs: Any) -> Any:
    return through(form, function, *args, **kwargs) if mode.tracer is None else function(*args, **kwargs)


def divert_functions(through: Callable[..., Any]) -> Callable[[], None]:
    """Let the functions of all ops return `through(op, function, args, kwargs)`, until the result is called.

    Args:
        through: gets the op, the function that does the work, and the arguments of the call. The function's attribute
            `public` is the one that was called, by PyTorch's `Tensor.add` for `a + b`.
    """
    before = []
    for op, form, function in _functions():
        code, namespace = function.__code__, function.__globals__
        before.append((function, code, function.__defaults__, function.__kwdefaults__, namespace["first_call"]))
        original = FunctionType(code, dict(namespace), function.__name__, function.__defaults__)
        original.__kwdefaults__ = function.__kwdefaults__
        original.__dict__["public"] = op.call if form is Form.operator else function
        if getattr(namespace["first_call"], "func", None) is _first_call:
            original.__globals__["first_call"] = partial(_first_call, original, op, form)
        namespace["first_call"] = partial(_diverted, through, op, original)
        function.__code__, function.__defaults__, function.__kwdefaults__ = _EMPTY, None, None

    def restore() -> None:
        for function, code, defaults, kwdefaults, first_call in before:
            function.__globals__["first_call"] = first_call
            function.__defaults__, function.__kwdefaults__ = defaults, kwdefaults
            function.__code__ = code  # last: another thread may be calling the function

    return restore


def _diverted(through: Callable[..., Any], op: Op, function: FunctionType, *args: Any, **kwargs: Any) -> Any:
    return through(op, function, args, kwargs)


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
    is_own = op.function.__module__.startswith("tallow.")  # a warnings filter serves tallow's own modules
    of_arrays = op.function if is_own else without_warnings(op.function)
    namespace.update(op=op, of_arrays=of_arrays, value_of=op.value, ufunc=op.ufunc, LIMIT=op.limit)
    namespace.update(defaults=op.all_defaults)
    made: dict[str, FunctionType] = {}
    exec(compile(text, filename, "exec"), namespace, made)
    (generated,) = made.values()
    function.__defaults__, function.__kwdefaults__ = generated.__defaults__, generated.__kwdefaults__
    function.__code__ = generated.__code__
