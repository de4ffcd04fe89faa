"""Parts of a tokenizer, each of which is an entry of `tokenizer.json`: its normalizer, its model and so on."""

from __future__ import annotations

import base64
import inspect
import json
import re
from collections.abc import Iterable
from typing import Any, ClassVar

from tallow.errors import ArgumentError, MissingNameError, UnsupportedError

ROOT = "tokenizers"
REQUIRED: Any = inspect.Parameter.empty


class Regex:
    """A regular expression, for parts that search."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern


def refused(what: str) -> UnsupportedError:
    """Return the error for what the package computes in Rust."""
    return UnsupportedError(
        f"{what}: tallow, which stands in for {ROOT} here, has no such feature",
        hint="use Python outside of the browser, with the package installed",
    )


class Part:
    """A part with its settings. A subclass states their names and defaults, in the order of its arguments.

    Attributes:
        entries: the part in `tokenizer.json`.
        names: the entries with another name than the argument.
    """

    signature: ClassVar[inspect.Signature] = inspect.Signature()
    names: ClassVar[dict[str, str]] = {}
    entries: dict[str, Any]

    def __init_subclass__(cls, /, names: dict[str, str] | None = None, **defaults: Any) -> None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        cls.signature = inspect.Signature([inspect.Parameter(n, kind, default=v) for n, v in defaults.items()])
        cls.names = names or {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        settings = {self.names.get(name, name): _entry(name, value) for name, value in bound.arguments.items()}
        self.entries = {"type": type(self).__name__, **settings}

    @classmethod
    def _of(cls, entries: dict[str, Any]) -> Any:
        """Return the part of an entry: an object of the class in this family that it names."""
        kinds = {kind.__name__: kind for kind in cls.__subclasses__()}
        if entries.get("type") not in kinds:
            raise ArgumentError(f"{cls.__name__} of type {entries.get('type')!r}", hint=f"known are {', '.join(kinds)}")
        part = object.__new__(kinds[entries["type"]])
        part.entries = entries
        return part

    def __getattr__(self, name: str) -> Any:
        if name == "entries" or name.startswith("__"):
            raise AttributeError(name)
        entry = self.names.get(name, name)
        if entry in self.entries:
            return self.entries[entry]
        if name in ("normalize_str", "pre_tokenize_str", "pre_tokenize", "normalize", "tokenize", "process"):
            raise refused(f"{ROOT}: {type(self).__name__}.{name}")
        raise MissingNameError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "entries":
            super().__setattr__(name, value)
        else:
            self.entries[self.names.get(name, name)] = _entry(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {"entries": self.entries}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r:.40}" for name, value in self.entries.items() if name != "type")
        return f"{type(self).__name__}({settings})"

    def __str__(self) -> str:
        return json.dumps(self.entries, ensure_ascii=False)


def _entry(name: str, value: Any) -> Any:
    """Return an argument as `tokenizer.json` has it."""
    if name == "pattern":
        return {"Regex": value.pattern} if isinstance(value, Regex) else {"String": str(value)}
    if name == "behavior":
        return camel_case(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Part):
        return value.entries
    if isinstance(value, Iterable) and not isinstance(value, str | dict):
        return [list(item) if isinstance(item, tuple) else _entry("", item) for item in value]
    return value


def camel_case(value: str) -> str:
    """Return a choice as `tokenizer.json` has it: "MergedWithNext" for "merged_with_next"."""
    return "".join(word.capitalize() for word in value.split("_")) if value.islower() else value


def snake_case(value: str) -> str:
    """Return a choice as arguments have it: "merged_with_next" for "MergedWithNext"."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", value).lower()


def tokenizer_json(**entries: Any) -> str:
    """Return the text of a `tokenizer.json`."""
    names = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    return json.dumps({"version": "1.0", "added_tokens": [], **dict.fromkeys(names), **entries}, ensure_ascii=False)
