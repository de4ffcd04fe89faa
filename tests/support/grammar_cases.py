"""Grammars as clients send them, for `support.fuzz` to damage: JSON schemas, patterns, EBNF and tools.

A grammar must be made, or refused by a tallow error, and so must the tokens that a text of it may begin with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from support.fuzz import VALUES, Change, Reader, change_bytes, change_json
from tallow.generation.constrain import Constraint, Grammar, Vocabulary, choices, grammar, json_schema, regex
from tallow.generation.constrain.schema import TYPES
from tallow.generation.constrain.schema_merging import ANNOTATIONS
from tallow.generation.tools import required_call, text_or_calls

MIB = 2**20
TOKENS = [None, *(bytes([byte]) for byte in range(256)), b'{"', b'":', b'", "', b"ab", b"the", b"12", b"\xc3\xa9"]
STOP = 0

SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "a person",
    "properties": {
        "name": {"type": "string", "maxLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["a", 1, None, [1, {"b": 2}]]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1},
        "pet": {"oneOf": [{"$ref": "#/$defs/dog"}, {"$ref": "#/$defs/cat"}]},
        "dog": {"allOf": [{"$ref": "#/$defs/dog"}, {"required": ["barks"]}]},
        "any": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/tag", "title": "a tag"}]},
    },
    "required": ["name", "tags"],
    "additionalProperties": {"type": "boolean"},
    "$defs": {
        "tag": {"type": "string", "pattern": "^[a-z]+$"},
        "dog": {
            "type": "object",
            "properties": {"is": {"const": "dog"}, "barks": {"type": "boolean"}},
            "required": ["is"],
        },
        "cat": {"type": "object", "properties": {"is": {"const": "cat"}, "kittens": {"$ref": "#"}}, "required": ["is"]},
    },
}


def _words(text: str) -> list[str]:
    return text.split()


KEYWORDS = _words(
    "type properties required additionalProperties patternProperties minProperties maxProperties items prefixItems "
    "additionalItems minItems maxItems uniqueItems minLength maxLength pattern format minimum maximum exclusiveMinimum "
    "exclusiveMaximum multipleOf const enum anyOf oneOf allOf not if $ref contains dependentRequired propertyNames"
)
ODD: tuple[Any, ...] = (
    *(10**310, -(10**310), 1e999, -1e999, 0.1, "9" * 5000, "a" * 3000, "\\", "(", ".*", "(.?){400}", "date", "uuid"),
    *(
        "#",
        "#/",
        "#/$defs/tag",
        "#/properties/pet",
        "#/properties",
        "#/required/0",
        "#/$defs/" + "9" * 5000,
        "#/~1",
        "x#",
    ),
    *([[1]], [["string"]], ["string", "null"], [None], [[]], [{}], ["name", "name"], [10**310], [True, 1, 1.0]),
    *({"a" * 3000: {}}, {"": {"$ref": "#"}}, {"$ref": "#"}, {"$ref": 5}, {"type": [["string"]]}, {"enum": [-1e999]}),
    *TYPES,
)
PATTERN = r"(?:[a-z]{2,5}|\d+(?:\.\d*)?|[^\s\W]\D)+?(é|\x41\n|[]\-a])*.{1,20}$"
PATTERN_PARTS = (
    *"()[]{}|*+?.^$\\-,:#<>=!aé0 \n",
    *_words(r"\d \w \W \b \B \Z \A \1 \x4 \u00e9 \ud800 \U00110000 \N{BULLET} \N{x} \777 \8"),
    *_words(
        "(?: (?s) (?i) (?x) (?a) (?s: (?-s: (?= (?! (?<= (?<! (?P<a> (?P=a) (?(1) (?# (?> "
        "{2,} {,3} {1000} {99999999999} *? ++"
    ),
    *("[^", "[a-", "[[:alpha:]]", "[a--b]", "\ud800", "\U0001f600", "\0", "{" + "9" * 4400 + "}", "(" * 60, "a" * 300),
)
EBNF = r"""root ::= item ("," ws item)* | "\"yes\"" {2,3} # a list
item ::= "[" root? "]" | [a-zé\]^-]+ | number | .
number ::= "-"? ("0" | [1-9] [0-9]*)
ws ::= [ \t\n]*
"""
EBNF_PARTS = (
    *'()[]{}|*+?.^"\\-,:=#_a0 \n',
    *_words(
        "root item ws ::= root::= ::=ws \\x41 \\u00e9 \\ud800 \\UFFFFFFFF \\q {2} {2,} {3,2} {,3} {1000} {99999999999}"
    ),
    *(
        "\nroot ::= ",
        "\nitem ::= root ",
        '""',
        "[^]",
        "[]",
        "[b-a]",
        "'a'",
        "{" + "9" * 4400 + "}",
        "(" * 60,
        "+" * 60,
        "\ud800",
    ),
)
TOOLS: dict[str, Any] = {
    "add": {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}, "b": {"$ref": "#/$defs/b"}},
        "$defs": {"b": {"type": "null"}},
    },
    "any": {"type": "object", "properties": {"again": {"$ref": "#"}}},
}
CHOICES = ["yes", "no", "perhaps, é"]


def change_schema(rng: Random, raw: bytes) -> bytes:
    """Set a keyword somewhere in a schema to an odd value, or change the JSON as that of any file."""
    if rng.random() < 0.4:
        return change_json(rng, raw)
    try:
        tree = json.loads(raw)
    except ValueError:
        return change_bytes(rng, raw)
    holder = rng.choice([tree, *_objects(tree)])
    if isinstance(holder, dict):
        value = rng.choice((*ODD, *VALUES, *_objects(tree)))
        holder[rng.choice((*KEYWORDS, *holder, *sorted(ANNOTATIONS)))] = json.loads(json.dumps(value))
    return json.dumps(tree).encode()


def _objects(tree: Any) -> list[dict[str, Any]]:
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    found = [tree] if isinstance(tree, dict) else []
    return found + [each for part in parts for each in _objects(part)]


def change_text(parts: Sequence[str]) -> Change:
    """Return a change that inserts parts of the syntax into a text, takes letters out, or repeats some of it."""

    def change(rng: Random, raw: bytes) -> bytes:
        text = raw.decode("utf-8", "surrogatepass")
        at, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        match rng.randrange(6):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:end] + text[at:]
            case 2:
                text = text[:at] + text[at:end] * rng.choice((2, 3, 40)) + text[end:]
            case _:
                text = text[:at] + "".join(rng.choices(parts, k=rng.choice((1, 2, 5)))) + text[at:]
        return text.encode("utf-8", "surrogatepass")

    return change


def text_of(raw: bytes) -> str:
    """Return the text of a case."""
    return raw.decode("utf-8", "surrogatepass")


def values_of(raw: bytes) -> Any:
    """Return the values of a case in JSON; what is none of it is a text."""
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")


def _reader(valid: Any, make: Callable[[bytes], Grammar], change: Change) -> Reader:
    vocabulary = Vocabulary(TOKENS)

    def read(raw: bytes, place: Path) -> object:
        begun = Constraint(make(raw), vocabulary, [STOP])
        allowed = begun.allowed([], len(TOKENS))
        token = int(allowed[1:].argmax()) + 1
        return [allowed.tolist(), begun.allowed([token], len(TOKENS)).tolist() if allowed[token] else None]

    raw = valid.encode() if isinstance(valid, str) else json.dumps(valid).encode()
    return Reader(raw, read, change, form=lambda rng, same: same, extra_bytes=96 * MIB)


# A schema as values may hold what JSON's text may not, such as infinities.
GRAMMARS: dict[str, Reader] = {
    "schema as text": _reader(SCHEMA, lambda raw: json_schema(raw.decode("utf-8", "replace")), change_schema),
    "schema as values": _reader(SCHEMA, lambda raw: json_schema(values_of(raw)), change_schema),
    "pattern": _reader(PATTERN, lambda raw: regex(text_of(raw)), change_text(PATTERN_PARTS)),
    "pattern in a schema": _reader(
        PATTERN, lambda raw: json_schema({"pattern": text_of(raw)}), change_text(PATTERN_PARTS)
    ),
    "ebnf": _reader(EBNF, lambda raw: grammar(text_of(raw)), change_text(EBNF_PARTS)),
    "choices": _reader(CHOICES, lambda raw: choices(values_of(raw)), change_json),
    "tools": _reader(TOOLS, lambda raw: text_or_calls(values_of(raw)), change_schema),
    "a required tool": _reader(TOOLS, lambda raw: required_call(values_of(raw)), change_schema),
}
