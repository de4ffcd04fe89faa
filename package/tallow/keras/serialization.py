"""Objects as plain values and back: what `get_config`, `.keras` files and `clone_model` are made of.

An object is written as Keras writes it: a dict of its module, its class and its configuration. Reading one runs no code
but the constructors of Keras' own classes and of those that the caller names; nothing is imported by a name in a file.
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
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.keras import activations
from tallow.keras.operations import PACKAGE
from tallow.tensor import Tensor

HOMES = (  # the modules of tallow.keras whose classes files may name
    "layers", "models", "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers",
    "optimizers.schedules", "dtype_policies",
)  # fmt: skip
LAMBDA = "__lambda__"

_custom: dict[str, Any] = {}


def get_custom_objects() -> dict[str, Any]:
    """Every class and function registered so far, by registered name; it may be changed."""
    return _custom


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[Any], Any]:
    """A decorator: files may name this class or function, as "package>name"."""

    def register(found: Any) -> Any:
        if isinstance(found, type) and not hasattr(found, "get_config"):
            raise ArgumentTypeError(f"{found.__name__} has no get_config", mend="define it, or derive from Layer")
        _custom[f"{package}>{name or found.__name__}"] = found
        return found

    return register


def get_registered_name(obj: Any) -> str:
    """The name `obj` was registered under, or its own."""
    return next((name for name, found in _custom.items() if found is obj), obj.__name__)


def get_registered_object(
    name: str, custom_objects: Mapping[str, Any] | None = None, module_objects: Mapping[str, Any] | None = None
) -> Any:
    """What is registered under `name`, or None."""
    for table in (custom_objects or {}, _custom, module_objects or {}):
        if name in table:
            return table[name]
    return None


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any]) -> Iterator[None]:
    """Within it, files may name these classes and functions."""
    before = dict(_custom)
    _custom.update(custom_objects)
    try:
        yield
    finally:
        _custom.clear()
        _custom.update(before)


# ------------------------------------------------------------------------------------------------------------ writing


def serialize_keras_object(obj: Any) -> Any:
    """`obj` as a plain value: numbers, strings, lists and dicts. A function that has no name in Keras stays itself."""
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
        return next((name for name, known in activations.FUNCTIONS.items() if known is obj), obj)
    raise ArgumentTypeError(f"{obj!r:.200} has no configuration to be saved by", mend="give its class a get_config")


def _object_config(obj: Any) -> dict[str, Any]:
    kind = type(obj)
    entry = obj.file_entry() if hasattr(obj, "file_entry") else None
    if entry is not None:
        return entry
    config = {"module": None, "class_name": kind.__name__, "config": serialize_keras_object(obj.get_config())}
    if kind.__module__.startswith("tallow.keras."):
        return config | {"module": _module_in_keras(kind.__module__), "registered_name": None}
    return config | {"module": kind.__module__, "registered_name": get_registered_name(kind)}


def _module_in_keras(module: str) -> str:
    """Where Keras has what a module of tallow.keras defines."""
    home = module.split(".")[2]
    if home in ("models", "dtype_policies"):
        return "keras"
    return "keras.optimizers.schedules" if module.endswith(".schedules") else f"keras.{home}"


def to_json(config: Any, **options: Any) -> str:
    """A configuration as JSON.

    Raises:  ArgumentTypeError for a lambda, which a file cannot hold
    """
    return json.dumps(config, default=_function_config, **options)


def _function_config(function: Any) -> dict[str, Any]:
    name = getattr(function, "__name__", None)
    if not callable(function) or name is None:
        raise ArgumentTypeError(f"{function!r:.200} cannot be written to a file")
    if name == "<lambda>":
        raise ArgumentTypeError(
            "a lambda cannot be saved: a file holds no code",
            mend="define the function by `def`, and load with custom_objects={name: function}; or make it a Layer",
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
    """What `serialize_keras_object` made this of. Values that name no class come back as they are.

    Raises:  CheckpointError for code in a file; ArgumentError for a class that is neither Keras' nor in
        `custom_objects`, with the names that come near
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
    found = find_class(name, config.get("registered_name"), module)
    return found.from_config(_without_unused(found, inner))


def _without_unused(kind: Any, config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without the options that only Keras has, where they are not used: None or False."""
    if not kind.__module__.startswith("tallow.keras."):
        return config
    makers = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
    known = {name for maker in makers for name in inspect.signature(maker).parameters}
    return {key: value for key, value in config.items() if key in known or (value is not None and value is not False)}


def refuse_code(what: str) -> NoReturn:
    raise CheckpointError(
        f"{what} in a saved model is code of whoever made the file, and is not run",
        mend="rebuild the model in Python and load its weights into it, or save a named function instead",
    )


def _find_function(name: Any, registered: Any) -> Callable[..., Any]:
    for key in (registered, name):
        if isinstance(key, str) and (found := _custom.get(key, activations.FUNCTIONS.get(key))) is not None:
            return found
    raise ArgumentError(f"the function {name!r} is not known", mend=f"pass custom_objects={{{name!r}: the_function}}")


def find_class(name: Any, registered: Any = None, module: Any = None) -> Any:
    """The class that a file calls `name`: a custom one, or one of Keras' own; of two, that of the module."""
    for key in (registered, name):
        if isinstance(key, str) and key in _custom:
            return _custom[key]
    known: dict[str, Any] = {}
    for home in sorted(HOMES, key=lambda home: module != f"keras.{home}"):  # losses and metrics share names
        module = importlib.import_module(f"tallow.keras.{home}")
        found = getattr(module, name, None) if isinstance(name, str) and name in module.__all__ else None
        if isinstance(found, type) and hasattr(found, "from_config"):
            return found
        known |= dict.fromkeys(module.__all__)
    near = difflib.get_close_matches(str(name), known, n=3)
    hint = f"did you mean {' or '.join(near)}? For a class of your own " if near else ""
    raise ArgumentError(
        f"the class {name!r:.100} is not known", mend=f"{hint}pass custom_objects={{{name!r:.100}: the_class}}"
    )
