"""Random texts within random JSON schemas are valid, judged by the package jsonschema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallow.errors import GrammarError
from tallow.generation import Sampler, Text
from tallow.generation.constrain import Constraint, Grammar, Vocabulary, json_schema

STOP = 0
# All single bytes, some of several, and tokens that end what was begun, which a text takes when it grows long.
CLOSING = [b"]", b"}", b'"']  # the last is the most preferred
ENDINGS = [b":", b"a", b"0", b"1", b".", b"-", b"T", b"Z", b"@", b" ", b"n", b"u", b"\\", *CLOSING]
TOKENS = [
    None,
    *(bytes([byte]) for byte in range(256)),
    b'": ',
    b'", "',
    "é".encode(),
    "😀".encode(),
    b"[[",
    b"-1",
    b"12.5",
    *ENDINGS,
]
VOCABULARY = Vocabulary(TOKENS)

names = st.sampled_from(["a", "b", "ab", "", "é", '"', "a\\b", "\n"])
bounds = st.integers(-30, 30) | st.floats(-30, 30, allow_nan=False).map(lambda x: round(x, 3))
counts = st.integers(0, 3)
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=3)
constants = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2), max_leaves=3
)
strings = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={"minLength": counts, "maxLength": st.integers(2, 6)},
) | st.builds(
    lambda pattern: {"type": "string", "pattern": pattern},
    st.sampled_from([r"^[a-c]{1,3}$", r"a|b", r"\d+\.\d*$", r"[^a]", r'^["\\]\n$', r"^$", "^é.$", r"\w\s"]),
) | st.builds(
    lambda form: {"type": "string", "format": form},
    st.sampled_from(["date", "time", "date-time", "uuid", "ipv4", "email", "unknown"]),
)  # fmt: skip
numbers = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number", ["number", "null"]])},
    optional=dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], bounds)
    | {"multipleOf": st.just(1)},
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={"items": inner, "prefixItems": st.lists(inner, max_size=3), "minItems": counts, "maxItems": counts},
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": inner | st.booleans(),
            "minProperties": counts,
            "maxProperties": counts,
        },
    )
    several = st.builds(
        lambda key, options, beside: {key: options, **beside},
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(inner, min_size=1, max_size=3),
        st.fixed_dictionaries({}, optional={"minLength": counts, "title": st.just("t"), "minimum": bounds}),
    )
    return arrays | objects | several


plain = [{}, {"type": "boolean"}, {"$ref": "#"}, {"$ref": "#/$defs/d"}, {"minimum": 2}, {"type": ["null", "string"]}]
schemas = st.recursive(
    st.booleans()
    | strings
    | numbers
    | st.builds(lambda value: {"const": value}, constants)
    | st.builds(lambda values: {"enum": values}, st.lists(constants, min_size=1, max_size=3))
    | st.sampled_from(plain),
    containers,
    max_leaves=6,
)


def random_text(grammar: Grammar, seed: int) -> str:
    """Return a text that random tokens make; from the 40th on, those that may end it are preferred."""
    constraint = Constraint(grammar, VOCABULARY, [STOP])
    rng, sample = np.random.default_rng(seed), Sampler(seed=seed)
    text = Text([1])
    while True:
        logits = rng.normal(size=len(TOKENS)).astype(np.float32)
        if len(text) > 40:
            logits[-len(ENDINGS) :] += 20
            logits[-len(CLOSING) :] += np.array([1, 2, 40])
            logits[STOP] += 200
        token = sample(constraint(logits, text), text)
        if token == STOP:
            return b"".join(TOKENS[i] or b"" for i in text[1:]).decode()
        text.append(token)
        assert len(text) < 2000, text


refused = 0


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, st.fixed_dictionaries({}, optional={"d": schemas}), st.integers(0, 100))
def check(schema: Any, definitions: dict[str, Any], seed: int) -> None:
    global refused
    if isinstance(schema, dict):
        schema = {**schema, "$defs": definitions}
    try:
        grammar = json_schema(schema)
    except GrammarError:
        refused += 1
        return
    value = json.loads(random_text(grammar, seed))
    jsonschema.Draft202012Validator(schema).validate(value)


def test_texts_within_a_thousand_schemas_are_valid() -> None:
    check()
    assert refused < 600  # the rest can be guaranteed; most of these contradict themselves
