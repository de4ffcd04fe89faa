"""Grammars: the sets of texts that generation can be constrained to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from tallow.errors import GrammarError
from tallow.generation.constrain import ebnf
from tallow.generation.constrain.expressions import Expression, Literal, alternatives
from tallow.generation.constrain.patterns import expression_of
from tallow.generation.constrain.program import Program
from tallow.generation.constrain.schema import MAX_CONTAINERS, rules_of
from tallow.generation.constrain.schema_shapes import require_few
from tallow.generation.constrain.states import DEAD, Automaton
from tallow.generation.constrain.work import MAX_PER_TEXT, Work, done, limited
from tallow.io.json_object import parse_object


class Grammar:
    """A set of texts.

    Args:
        rules: the expressions that the rules stand for.
        start: the rule that a whole text matches.

    Raises:  GrammarError for rules that are missing, too large, begin with themselves, or match no text
    """

    def __init__(self, rules: Mapping[str, Expression], start: str) -> None:
        self.program = Program(rules, start)

    @property
    def nbytes(self) -> int:
        """The bytes that the grammar takes, about."""
        return self.program.nbytes

    def matches(self, text: str | bytes) -> bool:
        """Return whether a whole text is in the set."""
        automaton, state = self._read(text)
        return automaton.is_accepting(state)

    def begins(self, text: str | bytes) -> bool:
        """Return whether a text of the set begins with this one."""
        return self._read(text)[1] != DEAD

    def _read(self, text: str | bytes) -> tuple[Automaton, int]:
        """Return the states, and the one after a text."""
        automaton = self._automaton

        def states() -> Work[int]:
            return (yield from automaton.advance((yield from automaton.begin()), data))

        # Half of a surrogate pair becomes bytes that no text of a grammar has.
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return automaton, done(limited(states(), MAX_PER_TEXT, "the text"))[0]

    @cached_property
    def _automaton(self) -> Automaton:
        return Automaton(self.program)


def regex(pattern: str) -> Grammar:
    r"""Return the texts that match a regular expression as a whole, as by `re.fullmatch(pattern, text, re.ASCII)`.

    Raises:  GrammarError for an invalid pattern, back-references, look-around, and ^ or $ elsewhere than at the ends

    Example:
        regex(r"\d{4}-\d\d-\d\d")
    """
    return Grammar({"pattern": expression_of(pattern)}, "pattern")


def choices(texts: Collection[str]) -> Grammar:
    """Return the texts themselves.

    Raises:  GrammarError for no texts

    Example:
        choices(["positive", "negative"])
    """
    if isinstance(texts, str) or not isinstance(texts, Collection) or not all(isinstance(text, str) for text in texts):
        raise GrammarError(f"choices={texts!r:.80}", hint="pass a list of texts")
    return Grammar({"choice": alternatives(map(Literal, texts))}, "choice")


def grammar(text: str, start: str = "root") -> Grammar:
    """Return the texts of a grammar in EBNF, in the form that llama.cpp reads.

    Raises:  GrammarError, with the line, for a grammar in another form; as `Grammar`

    Example:
        grammar('root ::= ("buy" | "sell") " " [0-9]+ " shares"')
    """
    return Grammar(ebnf.parse(text), start)


def json_schema(schema: Mapping[str, Any] | bool | str) -> Grammar:
    """Return JSON texts that conform to a schema, given as Python values or as text.

    Every text is valid; not every valid text is one: properties come in the order of the schema, and numbers and white
    space have a limited form. See `tallow.generation.constrain.schema` for the keywords.

    Raises:  GrammarError for an invalid schema, one that no value matches, or a keyword that cannot be guaranteed

    Example:
        json_schema({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                     "required": ["name", "age"]})
    """
    if isinstance(schema, str):
        require_few(sum(map(schema.count, ",[{")))
        try:
            schema = parse_object(schema.encode(), "the schema", MAX_CONTAINERS)
        except ValueError as error:  # a CheckpointError, or half of a surrogate pair
            raise GrammarError(str(error), hint="see https://json-schema.org") from None
    return Grammar(rules_of(schema), "#")


def json_object() -> Grammar:
    """Return all JSON objects."""
    return json_schema({"type": "object"})
