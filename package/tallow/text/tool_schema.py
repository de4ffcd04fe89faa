"""JSON schemas of Python functions, for chat templates: from the annotations and the docstring.

Source:  the form of transformers 5.23, `get_json_schema`
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from tallow.errors import ArgumentError

_SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_TYPES: dict[Any, dict[str, Any]] = {
    **{kind: {"type": name} for kind, name in _SCALARS.items()},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
_HEADINGS = ("Args:", "Returns:", "Raises:")
_ENTRY = re.compile(r"\s*(\w+):\s*(.*)")
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*\Z", re.IGNORECASE)
HINT = "annotate all arguments and describe them under `Args:`, or pass a JSON schema"


class Docstring(NamedTuple):
    """The parts of a docstring: the text before the first heading, and what follows `Args:` and `Returns:`."""

    description: str
    arguments: dict[str, str]
    returns: str | None


def tool_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return {"type": "function", "function": {...}} with name, description and parameters of a function.

    The docstring must describe the function and, under the heading `Args:`, each argument. A description may end in
    `(choices: ["a", "b"])`.

    Raises:  ArgumentError without a docstring, a description or an annotation, and for types that JSON lacks
    """
    name = getattr(function, "__name__", "operation")
    text = inspect.getdoc(function)
    if not text:
        raise ArgumentError(f"the tool {name} has no docstring", hint=HINT)
    said = _read(text.strip())
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise ArgumentError(f"the tool {name}: {error}", hint=HINT) from error
    properties, required = {}, []
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        if place == 0 and parameter.name in ("self", "cls") and parameter.name not in hints:
            continue
        if parameter.name not in hints or parameter.name not in said.arguments:
            what = "description" if parameter.name in hints else "annotation"
            raise ArgumentError(f"the tool {name}: the argument {parameter.name} has no {what}", hint=HINT)
        where = f"the tool {name}: the argument {parameter.name}"
        properties[parameter.name] = _described(_schema(hints[parameter.name], where), said.arguments[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    parameters = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    schema = {"name": name, "description": said.description, "parameters": parameters}
    if "return" in hints:
        try:
            result = _schema(hints["return"], f"the tool {name}: the result")
        except ArgumentError:
            pass  # the model does not write the result
        else:
            schema["return"] = result | ({} if said.returns is None else {"description": said.returns})
    return {"type": "function", "function": schema}


def _read(text: str) -> Docstring:
    sections: dict[str, list[str]] = {"": []}
    heading = ""
    for line in text.split("\n"):
        if line.strip() in _HEADINGS:
            heading = line.strip()
            sections.setdefault(heading, [])
        else:
            sections[heading].append(line)
    arguments: dict[str, list[str]] = {}
    for line in sections.get("Args:", []):
        if entry := _ENTRY.match(line):
            arguments[entry[1]] = [entry[2].strip()]
        elif line.strip() and arguments:
            arguments[next(reversed(arguments))].append(line.strip())
    returns = "\n".join(sections["Returns:"]).strip() if "Returns:" in sections else None
    described = {name: " ".join(lines).strip() for name, lines in arguments.items()}
    return Docstring("\n".join(sections[""]).strip(), described, returns)


def _described(schema: dict[str, Any], description: str) -> dict[str, Any]:
    if choices := _CHOICES.search(description):
        try:
            listed = json.loads(choices[1])
        except ValueError as error:
            raise ArgumentError(f"choices {choices[1]!r:.100} are no JSON", hint='write ["a", "b"]') from error
        schema = schema | {"enum": [each.strip() if isinstance(each, str) else each for each in listed]}
        description = description[: choices.start()].strip()
    return schema | {"description": description}


def _schema(hint: Any, where: str) -> dict[str, Any]:
    """Return the schema of an annotation.  Args: where: for errors"""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum) and origin is None:
        return _enumeration([member.value for member in hint], hint, where)
    if origin is Literal:
        return _enumeration(list(arguments), hint, where)
    if origin in (Union, types.UnionType):
        return _union([_schema(each, where) for each in arguments if each is not type(None)], type(None) in arguments)
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], where)}
    if origin is tuple and len(arguments) > 1 and ... not in arguments:
        return {"type": "array", "prefixItems": [_schema(each, where) for each in arguments]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], where)}
    try:
        return dict(_TYPES[hint])
    except (KeyError, TypeError):
        raise ArgumentError(f"{where} is a {hint}, which JSON lacks", hint="pass a JSON schema") from None


def _enumeration(values: Sequence[Any], hint: Any, where: str) -> dict[str, Any]:
    if not values or any(type(value) not in _SCALARS for value in values):
        raise ArgumentError(f"{where} is a {hint}, whose values JSON lacks", hint="pass a JSON schema")
    kinds = list(dict.fromkeys(_SCALARS[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(values)}


def _union(parts: list[dict[str, Any]], is_optional: bool) -> dict[str, Any]:
    kinds = sorted({part["type"] for part in parts if part.keys() == {"type"} and isinstance(part["type"], str)})
    if len(parts) == 1:
        (schema,) = parts
    elif all(part.keys() == {"type"} and part["type"] in kinds for part in parts):
        schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
    else:
        schema = {"anyOf": parts}
    return schema | {"nullable": True} if is_optional else schema
