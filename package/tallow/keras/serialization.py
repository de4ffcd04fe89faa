"""Convert objects to plain values and back, for `get_config`, `.keras` files and `clone_model`.

An object is written in Keras' format: a dict with its module, class and configuration. Reading one executes only the
constructors of Keras' own classes and of classes that the caller passes; nothing is imported by a name in a file.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

import tallow as tl
from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.keras import activations
from tallow.keras.operations import PACKAGE

HOMES = (  # the modules of tallow.keras with classes that files may use
    "layers", "models", "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers",
    "optimizers.schedules", "dtype_policies",
)  # fmt: skip
LAMBDA = "__lambda__"

_custom: dict[str, Any] = {}


def get_custom_objects() -> dict[str, Any]:
    """Return the dict of registered classes and functions by registered name; it may be modified."""
    return _custom


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Any], Any]:
    """Return a decorator that registers a class or function, so that files may use it as "package>name"."""

    def register(obj: Any) -> Any:
        if isinstance(obj, type) and not hasattr(obj, "get_config"):
            raise ArgumentTypeError(
                f"{obj.__name__} does not define get_config", hint="define it, or derive from Layer"
            )
        _custom[f"{package}>{name or obj.__name__}"] = obj
        return obj

    return register


def get_registered_name(obj: Any) -> str:
    """Return the name under which `obj` is registered, or its own name."""
    return next((name for name, registered in _custom.items() if registered is obj), obj.__name__)


def get_registered_object(
    name: str, custom_objects: Mapping[str, Any] | None = None, module_objects: Mapping[str, Any] | None = None
) -> Any:
    """Return the object registered under `name`, or None."""
    for table in (custom_objects or {}, _custom, module_objects or {}):
        if name in table:
            return table[name]
    return None


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any]) -> Iterator[None]:
    """Allow files to use these classes and functions within the context."""
    previous = dict(_custom)
    _custom.update(custom_objects)
    try:
        yield
    finally:
        _custom.clear()
        _custom.update(previous)


# ------------------------------------------------------------------------------------------------------------ writing


def serialize_keras_object(obj: Any) -> Any:
    """Return `obj` as numbers, strings, lists and dicts. A function without a name in Keras is returned unchanged."""
    if obj is None or isinstance(obj, bool | int | float | str):
        return obj
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, np.ndarray | Tensor):
        array = obj.numpy(force=True) if isinstance(obj, Tensor) else np.asarray(obj)
        kind = "__numpy__" if isinstance(obj, np.ndarray) else "__tensor__"
        return {"class_name": kind, "config": {"value": array.tolist(), "dtype": str(array.dtype)}}
    if isinstance(obj, dtypes.dtype):
        return obj.name
    if obj is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(obj, slice):
        return {"class_name": "__slice__", "config": {"start": obj.start, "stop": obj.stop, "step": obj.step}}
    if isinstance(obj, Mapping):
        return {key: serialize_keras_object(value) for key, value in obj.items()}
    if hasattr(obj, "get_config") and not isinstance(obj, type):
        return _object_config(obj)
    if isinstance(obj, list | tuple):
        return [serialize_keras_object(part) for part in obj]
    if callable(obj):
        return next((name for name, function in activations.FUNCTIONS.items() if function is obj), obj)
    raise ArgumentTypeError(
        f"{obj!r:.200} cannot be saved: it has no get_config", hint="define get_config in its class"
    )


def _object_config(obj: Any) -> dict[str, Any]:
    kind = type(obj)
    entry = obj.file_entry() if hasattr(obj, "file_entry") else None
    if entry is not None:
        return entry
    config = {"module": None, "class_name": kind.__name__, "config": serialize_keras_object(obj.get_config())}
    if kind.__module__.startswith("tallow.keras."):
        return config | {"module": _keras_module(kind.__module__), "registered_name": None}
    return config | {"module": kind.__module__, "registered_name": get_registered_name(kind)}


def _keras_module(module: str) -> str:
    """Return the Keras module that corresponds to a module of tallow.keras."""
    home = module.split(".")[2]
    if home in ("models", "dtype_policies"):
        return "keras"
    return "keras.optimizers.schedules" if module.endswith(".schedules") else f"keras.{home}"


def to_json(config: Any, **options: Any) -> str:
    """Return a configuration as JSON.

    Raises:  ArgumentTypeError for a lambda, which a file cannot hold
    """
    return json.dumps(config, default=_function_config, **options)


def _function_config(function: Any) -> dict[str, Any]:
    name = getattr(function, "__name__", None)
    if not callable(function) or name is None:
        raise ArgumentTypeError(f"{function!r:.200} cannot be written to a file")
    if name == "<lambda>":
        raise ArgumentTypeError(
            "a lambda cannot be saved, because files hold no code",
            hint="define the function with def and load with custom_objects={name: function}, or write a Layer",
        )
    return {
        "module": "builtins",
        "class_name": "function",
        "config": name,
        "registered_name": get_registered_name(function),
    }


# ------------------------------------------------------------------------------------------------------------ reading


def deserialize_keras_object(
    config: Any, custom_objects: Mapping[str, Any] | None = None, safe_mode: bool = True
) -> Any:
    """Return the object that `serialize_keras_object` described. Values that name no class are returned unchanged.

    Raises:  CheckpointError for code in a file; ArgumentError, with similar names, for a class that is neither Keras'
        nor in `custom_objects`
    """
    if custom_objects:
        with custom_object_scope(custom_objects):
            return deserialize_keras_object(config)
    if isinstance(config, list | tuple):
        return [deserialize_keras_object(part) for part in config]
    if not isinstance(config, dict):
        return config
    if "class_name" not in config or "config" not in config:
        return {key: deserialize_keras_object(part) for key, part in config.items()}
    name, inner = config["class_name"], config["config"]
    if name == LAMBDA:
        refuse_code("a lambda")
    if name in ("__numpy__", "__tensor__"):
        array = np.array(inner["value"], dtype=inner["dtype"])
        return array if name == "__numpy__" else tl.tensor(array)
    if name == "__ellipsis__":
        return ...
    if name == "__slice__":
        return slice(inner["start"], inner["stop"], inner["step"])
    if name == "function":
        return _find_function(inner, config.get("registered_name"))
    module = config.get("module")
    if isinstance(module, str) and module.startswith(f"{PACKAGE}."):
        return importlib.import_module("tallow.keras.layers.operator").Operator.from_file_entry(name, inner)
    cls = find_class(name, config.get("registered_name"), module)
    return cls.from_config(_drop_unused_options(cls, inner))


def _drop_unused_options(kind: Any, config: dict[str, Any]) -> dict[str, Any]:
    """Remove options that only Keras has and that are unused: None or False."""
    if not kind.__module__.startswith("tallow.keras."):
        return config
    constructors = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
    parameters = {name for constructor in constructors for name in inspect.signature(constructor).parameters}
    return {
        key: value for key, value in config.items() if key in parameters or (value is not None and value is not False)
    }


def refuse_code(what: str) -> NoReturn:
    """Raise the CheckpointError for code in a file."""
    raise CheckpointError(
        f"{what} in a saved model is code, and code in files is never executed",
        hint="rebuild the model in Python and load its weights into it, or save a named function instead",
    )


def _find_function(name: Any, registered: Any) -> Callable[..., Any]:
    for key in (registered, name):
        if isinstance(key, str) and (function := _custom.get(key, activations.FUNCTIONS.get(key))) is not None:
            return function
    raise ArgumentError(f"unknown function {name!r}", hint=f"pass custom_objects={{{name!r}: the_function}}")


def find_class(name: Any, registered: Any = None, module: Any = None) -> Any:
    """Return the class with a name in files, a custom one or Keras' own; `module` decides between equal names."""
    for key in (registered, name):
        if isinstance(key, str) and key in _custom:
            return _custom[key]
    names: dict[str, Any] = {}
    for home in sorted(HOMES, key=lambda home: module != f"keras.{home}"):  # losses and metrics share some names
        module = importlib.import_module(f"tallow.keras.{home}")
        cls = getattr(module, name, None) if isinstance(name, str) and name in module.__all__ else None
        if isinstance(cls, type) and hasattr(cls, "from_config"):
            return cls
        names |= dict.fromkeys(module.__all__)
    near = difflib.get_close_matches(str(name), names, n=3)
    hint = f"did you mean {' or '.join(near)}? For a custom class " if near else ""
    raise ArgumentError(f"unknown class {name!r:.100}", hint=f"{hint}pass custom_objects={{{name!r:.100}: the_class}}")
