"""Grammars: which texts they contain, judged by Python's re and json, and which ones are refused."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow.errors import ArgumentError, GrammarError
from tallow.generation.constrain import (
    Grammar,
    Vocabulary,
    choices,
    ebnf,
    grammar,
    grammars,
    json_object,
    json_schema,
    patterns,
    regex,
)
from tallow.generation.constrain.json_texts import integer_between, number_between
from tallow.generation.constrain.states import Automaton
from tallow.generation.constrain.utf8 import byte_ranges
from tallow.generation.constrain.work import done

EDGES = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF]

PATTERNS = [
    r"[a-c]*b", r"(a|bc)+d?", r"a{2,3}b{0,1}", r"(?:a*)*", r"", r"a?b??c*?", r"\d+\.\d", r"\w\s\S", r"[^ab]c|.",
    r"(a(b(c)?)?)?", r"\D\W", r"[\d_-]+", r"(?s).b", r"x|", r"[]a]", r"^ab$", r"\Aab\Z", r"[é-ü]+€?", r"(){3}a",
    r"a{0}b", r"^a|b$",
]  # fmt: skip
LETTERS = "abcd 1._-]\né€"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_re_matches(pattern: str) -> None:
    texts = ["".join(letters) for n in range(4) for letters in itertools.product(LETTERS, repeat=n)]
    constrained = regex(pattern)
    # Without its ends, a pattern may not end before a final newline, as $ does.
    full = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    assert [text for text in texts if constrained.matches(text)] == [text for text in texts if full.fullmatch(text)]


@given(st.text(alphabet="ab{}()[]|*+?.^$\\d,1-", max_size=12), st.text(alphabet="ab1{}-", max_size=6))
def test_any_pattern_agrees_with_re_or_is_refused(pattern: str, text: str) -> None:
    try:
        constrained = regex(pattern)
    except GrammarError:
        return
    assert constrained.matches(text) == bool(re.fullmatch(pattern, text, re.ASCII))


@pytest.mark.parametrize(
    ("low", "high"),
    [(a, b) for a, b in itertools.combinations(EDGES, 2) if b - a < 5000 and not a < 0xD800 <= b],  # no surrogates
)
def test_byte_ranges_are_the_characters(low: int, high: int) -> None:
    found = [
        bytes(text)
        for part in byte_ranges(low, high)
        for text in itertools.product(*(range(a, b + 1) for a, b in part))
    ]
    expected = [chr(code).encode() for code in range(low, high + 1)]
    assert sorted(found) == sorted(expected)


def test_all_characters_but_no_other_bytes() -> None:
    any_character = regex(r"(?s).")
    for code in [*EDGES, 0xFFFD, 0x1F600]:
        assert any_character.matches(chr(code))
    for wrong in (b"\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\xc3"):
        assert not any_character.matches(wrong)


BALANCED = 'root ::= item ("," item)*  # a list\nitem ::= "[" root? "]" | [a-c]{1,2}\n'


@pytest.mark.parametrize(
    ("text", "is_whole", "begins"),
    [("a", True, True), ("[]", True, True), ("[[a],b,[]],cc", True, True), ("[a", False, True), ("a,", False, True),
     ("ccc", False, False), ("[a]]", False, False), ("", False, True), ("[" * 300 + "]" * 300, True, True)],
)  # fmt: skip
def test_a_recursive_grammar(text: str, is_whole: bool, begins: bool) -> None:
    nested = grammar(BALANCED)
    assert nested.matches(text) == is_whole
    assert nested.begins(text) == begins


def test_escapes_and_sets_of_ebnf() -> None:
    text = r'root ::= "\"\\\n\x41\u00e9\U0001F600" [^\]\n-]+ . | [\[a-]'
    assert grammar(text).matches('"\\\nAé😀xy]')
    assert grammar(text).matches("-")
    assert not grammar(text).matches('"\\\nAé😀-]')


def test_names_and_literals_of_llama_cpp() -> None:
    rules = grammar('root ::= 0-kv _b "x\ny" [\n]\n0-kv ::= "a"\n_b ::= "b"')
    assert rules.matches("abx\ny\n")


def test_choices_are_the_texts() -> None:
    either = choices(["yes", "no", "not at all"])
    assert [text for text in ("yes", "no", "not", "not at all", "") if either.matches(text)] == [
        "yes",
        "no",
        "not at all",
    ]


def test_json_objects_are_those_that_json_reads() -> None:
    texts = ['{"a": [1, -2.5, {"b": null}], "c": "\\n\\"é😀", "d": [true,\n  false]}', "{}", "{ }", '{"a":{"a":{}}}']
    for text in texts:
        assert json_object().matches(text)
        json.loads(text)
    for wrong in (
        '{"a": 01}',
        "[1]",
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": "\n"}',
        '{"a" 1}',
        '{"a": .5}',
        '{"a": "\\x"}',
        "{",
    ):
        assert not json_object().matches(wrong)
        with pytest.raises(ValueError):
            assert isinstance(json.loads(wrong), dict) or json.loads("")


@given(st.integers(-2000, 2000), st.integers(0, 1500))
def test_integers_between_bounds(low: int, size: int) -> None:
    between = Grammar({"n": integer_between(low, low + size)}, "n")
    edges = [low - 1, low, low + size // 2, low + size, low + size + 1, 0, 10 * low, -low]
    assert [between.matches(str(n)) for n in edges] == [low <= n <= low + size for n in edges]
    assert not between.matches("-0")
    assert not between.matches(f"0{low}")


@given(st.integers(-200, 200), st.integers(1, 300), st.booleans(), st.booleans(), st.integers(-400, 600))
def test_numbers_between_bounds(low: int, size: int, open_low: bool, open_high: bool, n: int) -> None:
    bounds = Fraction(low, 100), Fraction(low + size, 100)
    between = Grammar({"n": number_between(*bounds, open_low=open_low, open_high=open_high)}, "n")
    if n:  # -0.00 is not written
        inside = (low < n if open_low else low <= n) and (n < low + size if open_high else n <= low + size)
        text = f"{'-' if n < 0 else ''}{abs(n) // 100}.{abs(n) % 100:02d}"
        assert between.matches(text) == between.matches(text + "0") == inside


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        "boss": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["name", "boss"],
}


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ({"name": "x", "boss": None}, True),
        ({"name": "x", "age": 3, "tags": ["a", "b"], "boss": {"name": "y", "boss": None}}, True),
        ({"name": "x"}, False),
        ({"name": "", "boss": None}, False),
        ({"name": "x", "age": -1, "boss": None}, False),
        ({"name": "x", "tags": ["c"], "boss": None}, False),
        ({"name": "x", "tags": ["a", "a", "a"], "boss": None}, False),
        ({"name": "x", "boss": {}}, False),
        ({"name": "x", "boss": None, "other": 1}, False),
    ],
)
def test_an_object_by_its_schema(value: Any, is_valid: bool) -> None:
    assert json_schema(PERSON).matches(json.dumps(value)) == is_valid
    assert json_schema(json.dumps(PERSON)).matches(json.dumps(value, indent=2)) == is_valid


def test_additional_properties_do_not_repeat_the_named_ones() -> None:
    schema = {"properties": {"ab": {"type": "null"}}, "required": ["ab"], "additionalProperties": {"type": "integer"}}
    for text, is_valid in [('{"ab": null, "a": 1, "abc": 2}', True), ('{"ab": null, "ab": 1}', False)]:
        assert json_schema(schema).matches(text) == is_valid


def test_a_pattern_of_a_string_is_searched_and_escaped() -> None:
    schema = json_schema({"type": "string", "pattern": '"[\\\\/]\n'})
    assert schema.matches(json.dumps('x"\\\ny'))
    assert not schema.matches(json.dumps("x"))


def test_one_of_needs_options_that_differ() -> None:
    kinds = [{"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]} for name in "ab"]
    assert json_schema({"oneOf": kinds}).matches('{"kind": "b"}')
    with pytest.raises(GrammarError, match="may overlap"):
        json_schema({"oneOf": [{"minLength": 2}, {"maxLength": 3}]})


LONG = "a" * 1_000_000


def nested(depth: int) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(depth):
        schema = {"properties": {"a": schema}, "required": ["a"]}
    return schema


def doubled(key: str) -> Any:
    """Return a schema of a few lines that refers to its last part a million times."""
    two = [[{"$ref": f"#/$defs/a{i + 1}", "minLength": length} for length in (1, 2)] for i in range(20)]
    parts = {f"a{i}": {key: both} for i, both in enumerate(two)}
    return {"$ref": "#/$defs/a0", "$defs": parts | {"a20": {"type": "string"}}}


# Each reference is combined with what is beside it, without end.
ENDLESS = {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a", "minProperties": 0}}}}}


def test_schemas_and_groups_may_be_nested() -> None:
    assert json_schema(nested(45)).matches('{"a":' * 45 + "null" + "}" * 45)
    assert regex("(a" * 45 + ")?" * 45).matches("a" * 45)
    assert grammar("root ::= " + '("a"' * 45 + ")?" * 45).matches("a" * 45)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: regex("(a"), "not a regular expression"),
        (lambda: regex(r"(a)\1"), "groupref cannot"),
        (lambda: regex("a(?=b)"), "assert cannot"),
        (lambda: regex("a^b"), "elsewhere than at the ends"),
        (lambda: regex("(?i)a"), "flags"),
        (lambda: regex("((a{1000}){1000}){1000}"), "more than 50,000 nodes"),
        (lambda: regex("[^\\s\\S]"), "no text matches"),
        (lambda: regex("(" * 5000 + ")" * 5000), "nested too deeply"),
        (lambda: regex("[" * 99_999), "not a regular expression"),
        (lambda: regex("(?#[)" + "(" * 5000 + "]"), "nested too deeply"),
        (lambda: regex("(?x)#[\n" + "(" * 5000 + "]"), "flags"),
        (lambda: regex("a{" + "9" * 5000 + "}"), "not a regular expression"),
        (lambda: regex("(?:" + "()" * 10_000 + "a){1000}"), "more than 200,000 parts"),
        (lambda: choices([]), "no text matches"),
        (lambda: choices("yes"), "choices='yes'"),
        (lambda: choices(["\ud800"]), "surrogate"),
        (lambda: grammar("start ::= 'a'"), "line 1"),
        (lambda: grammar('start ::= "a"'), "'root', which does not exist"),
        (lambda: grammar('root ::= "a" b'), "'b', which does not exist"),
        (lambda: grammar('root ::= "a"\n  )'), "line 2"),
        (lambda: grammar("root ::= *"), "nothing to repeat"),
        (lambda: grammar("root ::= [b-a]"), "wrong order"),
        (lambda: grammar('root ::= "a"{3,2}'), "smaller"),
        (lambda: grammar('root ::= "a"\nroot ::= "b"'), "twice"),
        (lambda: grammar(r'root ::= "\ud800"'), "not a character"),
        (lambda: grammar('root ::= "a" root'), "no text matches"),
        (lambda: grammar('root ::= a "x"\na ::= "" | root'), "begins with itself"),
        (lambda: grammar('root ::= "a"? root "b" | "c"'), "begins with itself"),
        (lambda: grammar("root ::= " + "(" * 5000), "more than 50 groups"),
        (lambda: grammar('root ::= "a"' + "+" * 5000), "repetitions in a row"),
        (lambda: grammar('root ::= "a"{' + "9" * 5000 + "}"), "line 1"),
        (lambda: json_schema("["), "not a JSON object"),
        (lambda: json_schema('{"a":' * 100_000), "levels deep"),
        (lambda: json_schema(nested(300)), "nested too deeply"),
        (lambda: json_schema(nested(60)), "nested too deeply"),
        (lambda: json_schema({"$ref": "#", "properties": {"a": {"$ref": "#"}}}), "lead to each other"),
        (lambda: json_schema({"allOf": [{"$ref": "#"}]}), "nested too deeply"),
        (lambda: json_schema(ENDLESS), "nested too deeply"),
        (lambda: json_schema(doubled("allOf")), "more than 50,000 steps"),
        (lambda: json_schema(doubled("anyOf")), "more than 50,000 steps"),
        (lambda: json_schema({"oneOf": [{"const": i} for i in range(3000)]}), "more than 50,000 steps"),
        (lambda: json_schema({"allOf": [{"$ref": "#/$defs/a"}] * 400, "$defs": {"a": {"enum": [LONG]}}}), "steps"),
        (lambda: json_schema({"type": "text"}), "#: type 'text'"),
        (lambda: json_schema({"$ref": "#"}), "begins with itself|no text matches"),
        (lambda: json_schema({"$ref": "#/$defs/a"}), "nothing is there"),
        (lambda: json_schema({"prefixItems": [{}], "$ref": "#/prefixItems/" + "9" * 5000}), "nothing is there"),
        (lambda: json_schema({"$ref": "https://example.com"}), "outside the schema"),
        (lambda: json_schema({"$ref": "#", "type": "object"}), "lead to each other"),
        (lambda: json_schema({"items": {"$ref": "#"}, "minItems": 1}), "no text matches"),
        (lambda: json_schema({"properties": 5}), "expected an object, got 5"),
        (lambda: json_schema({"enum": 5}), "expected a list, got 5"),
        (lambda: json_schema({"minLength": -1}), "expected a count"),
        (lambda: json_schema({"minimum": float("nan")}), "expected a number"),
        (lambda: json_schema({"minimum": 10**5000}), "thousands of digits"),
        (lambda: json_schema({"maximum": 10**310, "minimum": 10**309}), "no text matches"),
        (lambda: json_schema({"required": [[1]]}), "#/required: expected a list of strings"),
        (lambda: json_schema({"oneOf": [{"type": [["string"]]}, {"type": "null"}]}), "expected a type"),
        (lambda: json_schema({"oneOf": [{"properties": {"a": 5}}, {"properties": []}]}), "properties: expected an obj"),
        (lambda: json_schema({"$ref": "#/$defs/a", "minLength": 1, "$defs": {"a": 5}}), "expected an object, got 5"),
        (lambda: json_schema({"$ref": "#/$defs/" + "9" * 5000}), "nothing is there"),
        (lambda: json_schema({"allOf": [{"minLength": "2"}, {"minLength": 1}]}), "expected a count, got '2'"),
        (lambda: json_schema({"allOf": [{"properties": 5}, {"properties": {}}]}), "expected an object, got 5"),
        (lambda: json_schema({"allOf": [{"allOf": True}]}), "expected a list, got True"),
        (lambda: json_schema('{"enum": [-1e999]}'), "not a JSON value"),
        (lambda: json_schema({1: {}}), "no string"),  # type: ignore[dict-item]
        (lambda: choices(["a", 1]), "choices="),  # type: ignore[list-item]
        (lambda: json_schema({"minimum": 3, "maximum": 2}), "no text matches"),
        (lambda: json_schema({"properties": {"a": {"not": {}}}}), "#/properties/a: not cannot be guaranteed"),
        (lambda: json_schema({"maxLength": 10**9}), "more than 50,000 nodes"),
        (lambda: json_schema({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}), "two different values of 'pattern'"),
        (lambda: json_schema({"enum": [float("inf")]}), "not a JSON value"),
    ],
)  # fmt: skip
def test_what_cannot_constrain_a_text_is_refused(make: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        make()


def test_long_texts_and_large_trees_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    monkeypatch.setattr(patterns, "_parser", SimpleNamespace(parse=parsed.append))
    monkeypatch.setattr(ebnf, "_Parser", parsed.append)
    monkeypatch.setattr(grammars, "parse_object", parsed.append)
    with pytest.raises(GrammarError, match="100,001 letters; the limit is 100,000"):
        regex("a" * 100_001)
    with pytest.raises(GrammarError, match="100,001 letters; the limit is 100,000"):
        grammar("#" * 100_001)
    for text in ('{"enum": [' + "1," * 100_001, "[" * 100_001, "{" * 100_001):
        with pytest.raises(GrammarError, match="more than 100,000 values"):
            json_schema(text)
    assert not parsed
    for value in ([1] * 100_001, [[]] * 100_001, "a" * 6_500_000, {"a" * 6_500_000: 1}):
        with pytest.raises(GrammarError, match="more than 100,000 values"):
            json_schema({"enum": value})


def test_rules_that_match_the_empty_text_are_found_in_one_pass() -> None:
    rules = grammar(
        "root ::= " + " ".join(f"a{i}" for i in range(3000)) + "".join(f'\na{i} ::= ""' for i in range(3000))
    )
    assert rules.matches("")
    chain = "".join(f'r{i} ::= r{i + 1} "x" | ""\n' for i in range(2000))
    with pytest.raises(GrammarError, match="begins with itself"):
        grammar(f'root ::= r0\n{chain}r2000 ::= r0 "y" | ""')


def test_a_property_may_have_a_long_name() -> None:
    long = "a" * 500
    schema = {"properties": {long: {"type": "null"}}, "additionalProperties": {"type": "boolean"}}
    named = json_schema(schema)
    assert named.matches(f'{{"{long}": null, "{long}a": true, "{long[1:]}": true}}')
    assert not named.matches(f'{{"{long}": true}}')
    assert not named.matches(f'{{"{long[1:]}": null}}')


def test_places_in_large_schemas_are_shown_in_part() -> None:
    deep: Any = {"type": "text"}
    for letter in "abcdefgh":
        deep = {"properties": {letter * 10_000: deep}}
    with pytest.raises(GrammarError) as caught:
        json_schema(deep)
    assert len(str(caught.value)) < 1000


def test_many_constants_are_compared_in_one_pass() -> None:
    count = 2000  # of each of two options; pairs of them would be four million
    numbers = [{"enum": [*range(count)]}, {"enum": [float(i) for i in range(count, 2 * count)]}]
    assert json_schema({"oneOf": numbers}).matches(str(count - 1))
    with pytest.raises(GrammarError, match="may overlap"):
        json_schema({"oneOf": [numbers[0], {"enum": [float(count - 1)]}]})
    assert json_schema({"oneOf": [{"enum": [[1], "a"]}, {"enum": [[True], "b"]}]}).matches("[true]")


def test_an_ambiguous_grammar_is_refused_where_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "MAX_PER_TEXT", 50_000)
    ambiguous = grammar('root ::= a\na ::= "x" a b | "x" a c | "x"\nb ::= "b"\nc ::= "b"')
    with pytest.raises(GrammarError, match="too ambiguous"):
        ambiguous.matches("x" * 40)


TOKENS = [
    None,
    b"",
    b"a",
    b"ab",
    b"abc",
    b"b",
    b'"',
    b'{"',
    b"\xc3",
    b"\xa9",
    "é".encode(),
    b"1",
    b"12",
    b"}",
    b", ",
    b"ab",
    b"\xff",
]


def allowed_after(grammar: Grammar, tokens: Sequence[bytes | None], prefix: bytes) -> list[bool]:
    """Return which tokens may follow a prefix."""
    automaton = Automaton(grammar.program)
    state = done(automaton.advance(done(automaton.begin()), prefix))
    return done(Vocabulary(tokens).allowed(automaton, state)).tolist()


@pytest.mark.parametrize("prefix", ["", "{", '{"', '{"a', '{"a": 1', '{"é": [1'])
def test_the_tokens_that_may_follow(prefix: str) -> None:
    found = json_object()
    expected = [bool(token) and found.begins(prefix.encode() + token) for token in TOKENS]
    assert allowed_after(found, TOKENS, prefix.encode()) == expected


def test_a_random_vocabulary_in_a_tree() -> None:
    rng = np.random.default_rng(0)
    tokens = [bytes(rng.choice([97, 98, 44, 91, 93], size=rng.integers(1, 9)).tolist()) for _ in range(500)]
    nested = grammar(BALANCED)
    for prefix in (b"", b"a", b"[a,[", b"[[]"):
        assert allowed_after(nested, tokens, prefix) == [nested.begins(prefix + token) for token in tokens]


def test_a_vocabulary_without_texts() -> None:
    with pytest.raises(ArgumentError, match="none of the tokens"):
        Vocabulary([None, b""])
