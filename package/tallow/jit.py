"""torch.jit, as far as models use it: scripting and tracing compile as `tl.compile` does."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final
from weakref import WeakKeyDictionary

from tallow import export as _export
from tallow.errors import ArgumentError, UnsupportedError
from tallow.fx.compile.compiled import Compiled
from tallow.fx.compile.scripted import ScriptFunction, ScriptModule, no_archives
from tallow.lazy_names import names_of
from tallow.nn.module import Module

_LOADED: WeakKeyDictionary[Module, tuple[_export.ExportedProgram, str]] = WeakKeyDictionary()  # what `load` returned

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "unused",
]


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Compile a function or a module as `tl.compile` does; calls that no plan can hold run eagerly, without a warning.

    A module keeps its parameters, the names in its `state_dict`, and its mode. Unlike PyTorch's, the result runs the
    Python code of the original, so it may do what Python can do, and `is_scripting()` is False. A class is returned
    itself.
    """
    if builtins.isinstance(obj, ScriptModule | ScriptFunction):
        return obj
    if builtins.isinstance(obj, Module):
        return ScriptModule(obj)
    return ScriptFunction(obj) if builtins.isinstance(obj, FunctionType | MethodType | Compiled) else obj


def trace(
    func: Any, example_inputs: Any = None, *args: Any, example_kwarg_inputs: dict[str, Any] | None = None, **kwargs: Any
) -> Any:
    """Compile a function or a module, as `script` does, and call it once with the example.

    Unlike PyTorch's, the result follows Python's control flow in each call.

    Args:
        example_inputs: a tensor, or a tuple of arguments.

    Raises: ArgumentError if there is no example.
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise ArgumentError("trace: example_inputs or example_kwarg_inputs is missing")
    inputs = () if example_inputs is None else example_inputs
    compiled = script(func)
    args, kwargs = tuple(inputs) if builtins.isinstance(inputs, tuple | list) else (inputs,), example_kwarg_inputs or {}
    compiled(*args, **kwargs)
    if builtins.isinstance(compiled, ScriptModule):
        compiled.__dict__["example"] = args, kwargs
    return compiled


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write the graph of a traced module to a file, as `tl.export.save` does.

    The module that `load` returns takes batches of any size, and otherwise the sizes of the example. A warning says if
    it takes those of the example only.

    Raises: UnsupportedError for anything but a traced module, or one of `load` whose graph is as it was: tallow writes
        no TorchScript archives
    """
    if builtins.isinstance(m, ScriptModule):
        m.save(f, _extra_files)
        return
    program, code = _LOADED.get(m, (None, None)) if builtins.isinstance(m, Module) else (None, None)
    if program is None or code != m.code:
        raise no_archives()
    now = {**dict(m.named_parameters(remove_duplicate=False)), **dict(m.named_buffers(remove_duplicate=False))}
    for tensors in (program.state_dict, program.constants):
        tensors.update({name: now[name] for name in tensors})  # others, if the module has moved to a device
    _export.save(program, f, extra_files=_extra_files)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Return the module of a file that `save` has written.

    Args:
        map_location: moves the module to a device.

    Raises: UnsupportedError for an archive of TorchScript
    """
    try:
        program = _export.load(f, extra_files=_extra_files)
    except UnsupportedError as error:
        if "archive of PyTorch" not in str(error):
            raise
        raise UnsupportedError(
            "jit.load: tallow runs no TorchScript archives",
            hint="with PyTorch, save its weights: torch.save(torch.jit.load(path).state_dict(), new_path)",
        ) from None
    module = program.module()
    _LOADED[module] = program, module.code
    return module if map_location is None else module.to(map_location)


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the module itself."""
    return mod


optimize_for_inference = freeze


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the decorated function itself: `@jit.ignore` or `@jit.ignore(drop=True)`."""
    return drop if callable(drop) else lambda function: function


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether the object is an instance of a class, or of one of several. `list[int]` is checked as `list`."""
    types: tuple[Any, ...] = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple(getattr(t, "__origin__", t) for t in types))


def is_scripting() -> bool:
    """Return False."""
    return False


def is_tracing() -> bool:
    """Return False."""
    return False


__getattr__, __dir__ = names_of(__name__)
