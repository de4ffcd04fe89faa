"""Two JSON schemas as one, where that is possible, and the proof that no value conforms to both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tallow.errors import GrammarError
from tallow.generation.constrain.schema_shapes import PART, checked

ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "nullable"),
        *("$comment", "$schema", "$id", "$anchor", "$defs", "definitions", "discriminator"),
        *("contentEncoding", "contentMediaType"),
    }
)
_LARGER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_OPEN_ENDED = ("additionalProperties", "patternProperties")


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of the values that conform to both.

    Raises:  GrammarError where a keyword of both cannot be one
    """
    both = dict(first)
    for key, value in second.items():
        if key in ANNOTATIONS or key not in both or canonical(both[key]) == canonical(value):
            both[key] = value
        elif key in _LARGER:
            both[key] = max(each for each in (both[key], value) if each is not None)
        elif key in _SMALLER:
            both[key] = min(each for each in (both[key], value) if each is not None)
        elif key == "type":
            both[key] = _common_types(types_of(first), types_of(second))
        elif key == "required":
            both[key] = [*dict.fromkeys([*both[key], *value])]
        elif key == "properties" and all(
            canonical(value[name]) == canonical(both[key][name]) for name in value.keys() & both[key].keys()
        ):
            both[key] = {**both[key], **value}
        else:
            raise _conflict(key)
    names = first.get("properties", {}), second.get("properties", {})
    if names[0].keys() != names[1].keys():
        for key in _OPEN_ENDED:
            if first.get(key, True) not in (True, {}) or second.get(key, True) not in (True, {}):
                raise _conflict(key)
    return both


def canonical(value: Any) -> str:
    """Return a text that equal JSON values share; true is not 1."""
    return json.dumps(value, sort_keys=True)


def types_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return the types that a schema names; none if it has no `type`."""
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def _common_types(first: list[Any], second: list[Any]) -> list[Any]:
    """Return the types of both lists; an integer is a number."""
    common = [kind for kind in first if kind in second]
    for some, others in ((first, second), (second, first)):
        if "integer" in some and "number" in others and "integer" not in common:
            common.append("integer")
    return common


def are_disjoint(first: Any, second: Any) -> bool:
    """Return whether it is certain, from types, constants and required properties, that no value conforms to both."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return first is False or second is False
    first, second = checked(first, PART), checked(second, PART)
    types = [{("number" if t == "integer" else t) for t in types_of(schema)} for schema in (first, second)]
    if types[0] and types[1] and not types[0] & types[1]:
        return True
    constants = [_constants(schema) for schema in (first, second)]
    if constants[0] is not None and constants[1] is not None:
        return not {_comparable(value) for value in constants[0]} & {_comparable(value) for value in constants[1]}
    if types != [{"object"}, {"object"}]:
        return False
    required = set(first.get("required", [])) & set(second.get("required", []))
    properties = [schema.get("properties", {}) for schema in (first, second)]
    return any(are_disjoint(properties[0].get(name, True), properties[1].get(name, True)) for name in required)


def _constants(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def _comparable(value: Any) -> Any:
    """Return a value to be looked up; equal JSON values have equal ones. 1 and 1.0 are equal, true and 1 are not."""
    if isinstance(value, dict):
        return dict, frozenset((key, _comparable(part)) for key, part in value.items())
    if isinstance(value, list):
        return list, tuple(map(_comparable, value))
    return isinstance(value, bool), value


def _conflict(key: str) -> GrammarError:
    return GrammarError(f"a schema combines two different values of {key!r}", hint="write the combined schema")
