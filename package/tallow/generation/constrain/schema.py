"""JSON schemas as grammars: every text of the grammar is valid, though not every valid text is in the grammar.

Values are written as in `json_texts`. Properties come in the order of the schema; others come only where the schema has
`additionalProperties` (not false), requires names that it does not describe, or names no properties at all. `format`
constrains date, time, date-time, uuid, ipv4 and email to common forms of these, and is an annotation otherwise. A
schema without `type` stands for the types that its keywords belong to.

What a grammar cannot guarantee is refused: `not`, `if`, `contains`, `dependentRequired`, `dependentSchemas`,
`propertyNames`, `patternProperties`, `multipleOf`, `uniqueItems` of more than one item, and `oneOf` of options that may
overlap.

Source:  JSON Schema 2020-12, and `items` as a list from draft 7
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any
from urllib.parse import unquote

from tallow.errors import GrammarError
from tallow.generation.constrain import json_texts
from tallow.generation.constrain.expressions import (
    EMPTY,
    MAX_DEPTH,
    NOTHING,
    Expression,
    Literal,
    Repeat,
    Rule,
    alternatives,
    any_number,
    optional,
    separated,
    sequence,
)
from tallow.generation.constrain.patterns import expression_of
from tallow.generation.constrain.schema_merging import ANNOTATIONS, are_disjoint, canonical, merged, types_of
from tallow.generation.constrain.schema_shapes import PART, Place, checked, checked_size, too_deep

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_KEYWORDS = {
    "object": "properties required additionalProperties patternProperties minProperties maxProperties propertyNames "
    "dependentRequired dependentSchemas dependencies unevaluatedProperties",
    "array": "items prefixItems additionalItems minItems maxItems uniqueItems contains unevaluatedItems",
    "string": "minLength maxLength pattern",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
_REFUSED = {
    "object": ("propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
    "array": ("contains", "unevaluatedItems"),
    "any": ("not", "if", "$dynamicRef", "$recursiveRef"),
}
_MAX_REFERENCES = 64  # in a row
MAX_CONTAINERS = 4 * MAX_DEPTH  # within one another; a level of a schema has up to four
# Bounds of the time: twenty schemas, each with two references to the next one, are read a million times.
MAX_STEPS = 50_000
_PAIRS_PER_STEP = 5  # of options that are compared
_VALUES_PER_STEP = 100  # of the whole schema, when two parts of it are compared or combined

_DATE = (  # of the years from 1000; without 29 February
    r"[1-9]\d{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "ipv4": rf"(?:{_BYTE}\.){{3}}{_BYTE}",
    "email": r"[a-zA-Z0-9_+-]{1,30}(?:\.[a-zA-Z0-9_+-]{1,30}){0,2}@[a-z0-9]{1,30}(?:\.[a-z0-9]{1,30}){1,3}",
}


def rules_of(schema: Any) -> dict[str, Expression]:
    """Return the rules of a schema; the first is "#".

    Raises:  GrammarError for an invalid schema, one that no value matches, and one with keywords that are refused
    """
    return _Converter(schema, checked_size(schema, MAX_CONTAINERS)).convert()


class _Converter:
    """Converts a schema in MAX_STEPS or fewer.

    Args:  size: the number of values in `root`
    """

    def __init__(self, root: Any, size: int) -> None:
        self._root = root
        self._size = size
        self._steps = 0
        self._rules: dict[str, Expression] = {}
        self._pending: list[str] = []

    def convert(self) -> dict[str, Expression]:
        """Convert the root and all that it refers to."""
        self._reference("#")
        while self._pending:
            reference = self._pending.pop()
            self._rules[reference] = self._value(self._resolve(reference), Place.of(reference))
        return self._rules

    def _count(self, steps: float) -> None:
        self._steps += 1 + int(steps)
        if self._steps > MAX_STEPS:
            raise GrammarError(
                f"the schema takes more than {MAX_STEPS:,} steps to read", hint="use fewer options and references"
            )

    # ------------------------------------------------------------------------------------------------ references

    def _reference(self, reference: str) -> Rule:
        if reference not in self._rules:
            self._rules[reference] = NOTHING  # until its turn
            self._pending.append(reference)
        return Rule(reference)

    def _resolve(self, reference: Any) -> Any:
        """Return the schema that a JSON Pointer within the root refers to (RFC 6901)."""
        found = self._root
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise GrammarError(f"$ref {reference!r:.80} is outside the schema", hint="copy it to $defs")
        for name in unquote(reference[1:]).split("/")[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
                found = found[int(name)]
            else:
                raise GrammarError(f"$ref {reference!r:.80}: nothing is there", hint='define it, such as in "$defs"')
        return found

    def _dereferenced(self, schema: Any) -> Any:
        """Return a schema without $ref at its top, combined with the keywords beside it."""
        for _ in range(_MAX_REFERENCES):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            target = self._resolve(schema["$ref"])
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = self._both(target, beside)
        raise GrammarError("the schema's $ref lead to each other", hint="let one of them be a schema")

    def _both(self, first: Any, second: Any) -> Any:
        self._count(self._size / _VALUES_PER_STEP)
        if first is False or second is False:
            return False
        if first is True or second is True:
            return second if first is True else first
        return merged(checked(first, PART), checked(second, PART))

    # ---------------------------------------------------------------------------------------------------- values

    def _value(self, schema: Any, place: Place) -> Expression:
        """Return the values that conform to a schema; `place` is its JSON Pointer."""
        self._count(1)
        if place.depth > 2 * MAX_DEPTH:  # two for each level of an object; keywords beside references add some
            raise too_deep()
        if schema is True:
            return self._anything()
        if schema is False:
            return NOTHING
        schema = checked(schema, place)
        if "$ref" in schema:
            if not schema.keys() - ANNOTATIONS - {"$ref"}:
                self._resolve(schema["$ref"])
                return self._reference(schema["$ref"])
            return self._value(self._dereferenced(schema), place)
        for key in _REFUSED["any"]:
            if key in schema:
                raise _refused(key, place)
        if "allOf" in schema:
            return self._value(self._all_of(schema, place), place)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._any_of(schema, key, place)
        if "const" in schema or "enum" in schema:
            return self._constants(schema, place)
        types = types_of(schema)
        for kind in types:
            if kind not in TYPES:
                raise GrammarError(f"{place}: type {kind!r:.40}", hint=f"types are {', '.join(TYPES)}")
        if "type" not in schema:
            types = [kind for kind, keys in _KEYWORDS.items() if not schema.keys().isdisjoint(keys.split())]
            if not types:
                return self._anything()
        return alternatives(self._of_type(kind, schema, place) for kind in types)

    def _all_of(self, schema: Mapping[str, Any], place: Place, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:  # a reference to itself
            raise too_deep()
        combined: Any = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            part = self._dereferenced(part)
            if isinstance(part, dict) and "allOf" in part:
                part = self._all_of(checked(part, place), place, depth + 1)
            combined = self._both(combined, part)
        return combined

    def _any_of(self, schema: Mapping[str, Any], key: str, place: Place) -> Expression:
        beside = {name: value for name, value in schema.items() if name != key and name not in ANNOTATIONS}
        options = schema[key]
        if key == "oneOf":
            self._count(len(options) * self._size / _VALUES_PER_STEP + len(options) ** 2 / _PAIRS_PER_STEP)
            resolved = [self._dereferenced(option) for option in options]
            if not all(are_disjoint(a, b) for i, a in enumerate(resolved) for b in resolved[:i]):
                hint = "use anyOf, or give each option a constant of its own"
                raise GrammarError(f"{place}: oneOf of options that may overlap", hint=hint)
        if not beside:
            return alternatives(self._value(option, place.then(key, str(i))) for i, option in enumerate(options))
        both = (self._both(beside, self._dereferenced(option)) for option in options)
        return alternatives(self._value(option, place.then(key, str(i))) for i, option in enumerate(both))

    def _constants(self, schema: Mapping[str, Any], place: Place) -> Expression:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        if "const" in schema and "enum" in schema:
            values = values if canonical(values[0]) in map(canonical, schema["enum"]) else []
        others = schema.keys() - ANNOTATIONS - {"const", "enum", "type"}
        if others:
            raise _refused(f"{min(others)} beside const or enum", place)
        types = types_of(schema)
        return alternatives(json_texts.literal(value) for value in values if not types or _type_of(value) & set(types))

    def _of_type(self, kind: Any, schema: Mapping[str, Any], place: Place) -> Expression:
        group = "number" if kind == "integer" else kind
        for key in _REFUSED.get(group, ()):
            if key in schema and schema[key] is not True:
                raise _refused(key, place)
        if kind == "object":
            return self._object(schema, place)
        if kind == "array":
            return self._array(schema, place)
        if kind == "string":
            return self._string(schema, place)
        if kind == "boolean":
            return alternatives([Literal("true"), Literal("false")])
        return Literal("null") if kind == "null" else _number(kind, schema, place)

    def _anything(self) -> Expression:
        if "any" not in self._rules:
            members = separated(self._member(json_texts.string(), Rule("any")), json_texts.spaced(","), 0, None)
            items = separated(Rule("any"), json_texts.spaced(","), 0, None)
            scalars = [json_texts.string(), json_texts.NUMBER, *map(Literal, ("true", "false", "null"))]
            self._rules["any"] = alternatives([_in_brackets("{}", members), _in_brackets("[]", items), *scalars])
        return Rule("any")

    # ---------------------------------------------------------------------------------------------------- objects

    def _object(self, schema: Mapping[str, Any], place: Place) -> Expression:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        extra = schema.get("additionalProperties", not (properties or required))
        least, most = _count(schema, "minProperties") or 0, _count(schema, "maxProperties")
        names = dict.fromkeys([*properties, *required])
        if schema.get("patternProperties"):
            raise _refused("patternProperties", place)
        if not names:
            if least > 1:  # a text may repeat a name
                raise _refused("minProperties of more than the required ones and one", place)
            member = self._member(json_texts.string(), self._value(extra, place.then("additionalProperties")))
            return _in_brackets("{}", separated(member, json_texts.spaced(","), least, most))
        if most is not None and (most < len(names) or extra is not False):
            raise _refused("maxProperties of fewer than the named ones", place)
        if least > len(required):
            raise _refused("minProperties of more than the required ones", place)
        return _in_brackets("{}", self._members(names, properties, set(required), extra, place))

    def _members(
        self, names: Iterable[Any], properties: Mapping[str, Any], required: set[Any], extra: Any, place: Place
    ) -> Expression:
        """Return the named members in order, and then further ones.

        Which comma stands before a member depends on whether any is before it: each member has a rule for itself, and
        one for itself and all that follow with commas.
        """
        comma = json_texts.spaced(",")
        names = list(names)
        following: Expression = EMPTY
        firsts: list[Expression] = [EMPTY]
        if extra is not False:
            value = self._value(extra, place.then("additionalProperties"))
            further = self._member(json_texts.string_except(names, self._rule), value)
            following = any_number(sequence(comma, further))
            firsts = [separated(further, comma, 0, None)]
        for name in reversed(names):
            # A required name without a schema of its own is an additional property.
            schema = properties.get(name, extra)
            if extra is False and name not in properties:
                raise GrammarError(
                    f"{place}: {name!r:.40} is required, but not allowed", hint="describe it in properties"
                )
            where = place.then("properties", name)
            member = self._rule(f"member {where}", self._member(json_texts.literal(name), self._value(schema, where)))
            rest = self._rule(f"after {where}", following)
            with_comma = sequence(comma, member)
            if name in required:
                firsts = []
            else:
                with_comma = optional(with_comma)
            firsts.append(sequence(member, rest))
            following = sequence(with_comma, rest)
        return alternatives(reversed(firsts))

    def _rule(self, name: str, expression: Expression) -> Rule:
        name = f"{name} {len(self._rules)}"  # two places may look the same, such as those of a merged schema
        self._rules[name] = expression
        return Rule(name)

    def _member(self, name: Expression, value: Expression) -> Expression:
        return sequence(name, json_texts.spaced(":"), value)

    # ----------------------------------------------------------------------------------------- arrays and strings

    def _array(self, schema: Mapping[str, Any], place: Place) -> Expression:
        items = schema.get("items", True)
        prefix = schema.get("prefixItems", [])
        if isinstance(items, list):  # draft 7
            prefix, items = items, schema.get("additionalItems", True)
        least, most = _count(schema, "minItems") or 0, _count(schema, "maxItems")
        if schema.get("uniqueItems") and (most is None or most > 1):
            raise _refused("uniqueItems of more than one item", place)
        comma = json_texts.spaced(",")
        rest = self._value(items, place.then("items"))
        if not prefix:
            return _in_brackets("[]", separated(rest, comma, least, most))
        first = [self._value(part, place.then("prefixItems", str(i))) for i, part in enumerate(prefix)]
        if most is not None:
            first = first[:most]
        after: Expression = Repeat(
            sequence(comma, rest), max(least - len(first), 0), None if most is None else max(most - len(first), 0)
        )
        for i in reversed(range(len(first))):
            after = sequence(comma, first[i], after) if i else sequence(first[i], after)
            if i >= least:
                after = optional(after)
        return _in_brackets("[]", after)

    def _string(self, schema: Mapping[str, Any], place: Place) -> Expression:
        least, most = _count(schema, "minLength") or 0, _count(schema, "maxLength")
        pattern = schema.get("pattern")
        form = FORMATS.get(schema["format"]) if isinstance(schema.get("format"), str) else None
        limits = [key for key in ("minLength", "maxLength", "pattern") if key in schema]
        if (len(limits) > 1 and pattern is not None) or (form is not None and limits):
            raise _refused(f"{limits[-1]} beside {'format' if form else 'pattern'}", place)
        if form is not None:
            return json_texts.quoted(expression_of(form))
        if pattern is None:
            return json_texts.string(least, most)
        return json_texts.quoted(expression_of(pattern, whole=False, letter=json_texts.letter))


def _number(kind: Any, schema: Mapping[str, Any], place: Place) -> Expression:
    if schema.get("multipleOf", 1) != 1:
        raise _refused("multipleOf", place)
    bounds = {key: _bound(schema, key) for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")}
    lows = [
        (bound, key.startswith("ex")) for key in ("minimum", "exclusiveMinimum") if (bound := bounds[key]) is not None
    ]
    highs = [
        (-bound, key.startswith("ex")) for key in ("maximum", "exclusiveMaximum") if (bound := bounds[key]) is not None
    ]
    low, open_low = max(lows, default=(None, False))
    minus_high, open_high = max(highs, default=(None, False))
    high = None if minus_high is None else -minus_high
    if kind == "integer" or "multipleOf" in schema:
        if low is None and high is None:
            return json_texts.INTEGER
        least = None if low is None else floor(low) + 1 if open_low else ceil(low)
        most = None if high is None else ceil(high) - 1 if open_high else floor(high)
        return json_texts.integer_between(least, most)
    if low is None and high is None:
        return json_texts.NUMBER
    return json_texts.number_between(low, high, open_low=open_low, open_high=open_high)


def _in_brackets(brackets: str, content: Expression) -> Expression:
    return sequence(json_texts.opened(brackets[0]), content, json_texts.closed(brackets[1]))


def _type_of(value: Any) -> set[str]:
    """Return the names of a constant's type."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int | float):
        return {"number", "integer"} if isinstance(value, int) or value.is_integer() else {"number"}
    names = {str: "string", list: "array", dict: "object", type(None): "null"}
    return {names[type(value)]} if type(value) in names else set()


def _count(schema: Mapping[str, Any], key: str) -> int | None:
    value = schema.get(key)
    return None if value is None else int(value)


def _bound(schema: Mapping[str, Any], key: str) -> Fraction | None:
    value = schema.get(key)
    return None if value is None else Fraction(value)  # of a float its exact value, which readers of the number get too


def _refused(what: str, place: Place) -> GrammarError:
    return GrammarError(f"{place}: {what} cannot be guaranteed while a text is written", hint="check it afterwards")
