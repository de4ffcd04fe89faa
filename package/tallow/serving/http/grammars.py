"""The fields that say what a text must be one of: a JSON schema, a regular expression, a grammar, calls of tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from starlette.requests import Request

from tallow.errors import TallowError
from tallow.generation.constrain import Constraint, Grammar, choices, grammar, json_schema, regex
from tallow.generation.processors import Logits
from tallow.generation.tools import required_call, text_or_calls
from tallow.serving.engine import TextEngine
from tallow.serving.http.clients import READERS, in_turn
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.requests import TextRequest

MAX_CHARACTERS = 1 << 18  # of a schema, a pattern or a grammar
MAX_CHOICES = 1024


@dataclass
class Constrained:
    """A grammar as text, and the field that asks for it. Once it was read, it is the processor that keeps texts in it.

    Args:
        grammar_of: reads the text.

    Attributes:
        constraint: the processor of the grammar, once it was read.
    """

    grammar_of: Callable[[str], Grammar]
    text: str
    param: str

    constraint: Constraint | None = field(default=None, init=False)

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        return self._read_before()(logits_V, tokens)

    def prepare(self, tokens: Sequence[int]) -> Iterator[int]:
        """Find what a call needs, a little at a time, as `Constraint.prepare`."""
        return self._read_before().prepare(tokens)

    async def read(self, request: Request, engine: TextEngine) -> None:
        """Read the grammar, in a thread and between the engine's steps. It stops when the client leaves.

        Raises:  ApiError, also for no valid grammar; ClientGone
        """
        grammars = engine.served.grammars
        self.constraint = grammars.known(self.grammar_of, self.text)
        if self.constraint is not None:
            return
        unwanted = Event()

        def constraint() -> Constraint:
            return engine.slices.call(
                lambda: grammars.constraint(self.grammar_of, self.text), lambda: not unwanted.is_set()
            )

        try:
            self.constraint = await in_turn(request, constraint, threads=READERS)
        except TallowError as error:
            raise api_error(error, self.param) from error
        finally:
            unwanted.set()

    def _read_before(self) -> Constraint:
        if self.constraint is None:
            raise RuntimeError("the grammar has not been read")
        return self.constraint


async def read_grammars(request: Request, engine: TextEngine, texts: Sequence[TextRequest]) -> None:
    """Read the grammar that the texts of a request have in common, if there is one.  Raises: ApiError; ClientGone"""
    for processor in texts[0].processors:
        if isinstance(processor, Constrained):
            await processor.read(request, engine)


def text_grammar(fields: Fields) -> Constrained | None:
    """Return the grammar that a request asks for, in the words of OpenAI, vLLM, SGLang or llama.cpp; None for any text.

    Raises:  ApiError, also for two grammars
    """
    structured = fields.inner("structured_outputs") or Fields({})
    found = [
        response_format(fields.inner("response_format")),
        *(_named(fields, name, read) for name, read in FIELDS.items()),
        *(_named(structured, name, read) for name, read in STRUCTURED.items()),
    ]
    grammars = [grammar for grammar in found if grammar is not None]
    if len(grammars) > 1:
        names = " and ".join(grammar.param for grammar in grammars)
        raise ApiError(f"{names} both say what the text is; choose one", grammars[1].param)
    return grammars[0] if grammars else None


def response_format(form: Fields | None) -> Constrained | None:
    """Return the grammar of the object `response_format`, or None for any text.  Raises: ApiError"""
    kind = "text" if form is None else form.choice("type", FORMATS)
    if form is None or kind == "text":
        return None
    if kind == "regex":
        return _pattern(form, "value")
    # huggingface_hub sends a schema as the `value`, llama.cpp takes it as the `schema`.
    for name in ("value", "schema"):
        if form.get(name) is not None:
            return _schema(form, name)
    if kind == "json_object":
        return constrained({"type": "object"}, form.name("type"))
    inner = form.inner("json_schema")
    if inner is None or not isinstance(inner.get("schema"), dict):
        raise form.wrong("json_schema", 'an object with "name" and "schema"')
    return _schema(inner, "schema")


def _named(fields: Fields, name: str, read: Callable[[Fields, str], Constrained]) -> Constrained | None:
    """Return the grammar of a field, or None if it is missing or has no effect."""
    return None if fields.get(name) in (None, "", [], False) else read(fields, name)


def _schema(fields: Fields, name: str) -> Constrained:
    schema = fields.get(name)
    if name == "value" and fields.get("type") == "json_schema" and isinstance(schema, dict):
        schema = schema.get("schema", schema)  # text-generation-inference has it beside a name
    if not isinstance(schema, dict | str):
        raise fields.wrong(name, "a JSON schema")
    return constrained(schema, fields.name(name))


def _pattern(fields: Fields, name: str) -> Constrained:
    return _constrained(regex, fields.required_text(name), fields.name(name))


def _choices(fields: Fields, name: str) -> Constrained:
    return _constrained(_one_of, json.dumps(fields.texts(name, MAX_CHOICES)), fields.name(name))


def _ebnf(fields: Fields, name: str) -> Constrained:
    return _constrained(grammar, fields.required_text(name), fields.name(name))


def _any_object(fields: Fields, name: str) -> Constrained:
    fields.flag(name)
    return constrained({"type": "object"}, fields.name(name))


FORMATS = ("text", "json_object", "json_schema", "json", "regex")
STRUCTURED = {"json": _schema, "regex": _pattern, "choice": _choices, "grammar": _ebnf, "json_object": _any_object}
FIELDS = {
    **{f"guided_{name}": read for name, read in STRUCTURED.items()},  # vLLM until 0.11
    "json_schema": _schema,  # llama.cpp, SGLang
    "regex": _pattern,
    "ebnf": _ebnf,
    "grammar": _ebnf,
}


def constrained(schema: Any, param: str) -> Constrained:
    """Return the grammar of a JSON schema, given as JSON values or as their text.  Raises: ApiError"""
    return _constrained(json_schema, schema if isinstance(schema, str) else json.dumps(schema), param)


def one_call(schemas: Mapping[str, Any]) -> Constrained:
    """Return the grammar of a required call; `schemas` by the names of the tools.  Raises: ApiError"""
    return _constrained(_required_call, json.dumps(schemas), "tools")


def any_calls(schemas: Mapping[str, Any]) -> Constrained:
    """Return the grammar of a text with valid calls; `schemas` by the names of the tools.  Raises: ApiError"""
    return _constrained(_text_or_calls, json.dumps(schemas), "tools")


def parameter_grammar(form: Fields | None) -> Constrained | None:
    """Return the grammar of the object `grammar` of text-generation-inference, or None.  Raises: ApiError"""
    if form is None:
        return None
    if form.choice("type", ("json", "json_schema", "regex")) == "regex":
        return _pattern(form, "value")
    return _schema(form, "value")


def _constrained(grammar_of: Callable[[str], Grammar], text: str, param: str) -> Constrained:
    if len(text) > MAX_CHARACTERS:
        raise ApiError(f"{param}: {len(text)} characters; the limit is {MAX_CHARACTERS}", param)
    return Constrained(grammar_of, text, param)


def _required_call(schemas: str) -> Grammar:
    return required_call(json.loads(schemas))


def _text_or_calls(schemas: str) -> Grammar:
    return text_or_calls(json.loads(schemas))


def _one_of(texts: str) -> Grammar:
    return choices(json.loads(texts))
