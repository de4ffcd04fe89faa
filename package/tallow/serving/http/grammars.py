"""The fields that say what a text must be one of: a JSON schema, a regular expression, calls of tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tallow.errors import TallowError
from tallow.generation.constrain import Constraint, Grammar, json_schema, regex
from tallow.generation.tools import required_call, text_or_calls
from tallow.serving.http.errors import api_error
from tallow.serving.http.fields import Fields
from tallow.serving.text_model import TextModel


@dataclass
class Constrained:
    """A grammar, and the field that asks for it."""

    grammar: Grammar
    param: str

    def processor(self, served: TextModel) -> Constraint:
        """Return the processor that keeps texts within the grammar.  Raises: ApiError"""
        try:
            return served.constraint(self.grammar)
        except TallowError as error:
            raise api_error(error, self.param) from error


def response_format(form: Fields | None) -> Constrained | None:
    """Return the grammar of the object `response_format`, or None for any text.  Raises: ApiError"""
    kind = "text" if form is None else form.choice("type", ("text", "json_object", "json_schema"))
    if form is None or kind == "text":
        return None
    # huggingface_hub sends a schema as the `value` of a json_object.
    if kind == "json_object":
        return constrained(form.get("value") or {"type": "object"}, form.name("value"))
    inner = form.inner("json_schema")
    if inner is None or inner.inner("schema") is None:
        raise form.wrong("json_schema", 'an object with "name" and "schema"')
    return constrained(inner.get("schema"), inner.name("schema"))


def constrained(schema: Any, param: str) -> Constrained:
    """Return the grammar of a JSON schema, given as JSON values or as their text.  Raises: ApiError"""
    return _constrained(json_schema, schema if isinstance(schema, str) else json.dumps(schema), param)


def one_call(schemas: Mapping[str, Any]) -> Constrained:
    """Return the grammar of a required call; `schemas` by the names of the tools.  Raises: ApiError"""
    return _constrained(_required_call, json.dumps(schemas), "tools")


def any_calls(schemas: Mapping[str, Any]) -> Constrained:
    """Return the grammar of a text with valid calls; `schemas` by the names of the tools.  Raises: ApiError"""
    return _constrained(_text_or_calls, json.dumps(schemas), "tools")


def text_grammar(form: Fields | None) -> Constrained | None:
    """Return the grammar of the object `grammar` of text-generation-inference, or None.  Raises: ApiError"""
    if form is None:
        return None
    kind, value = form.choice("type", ("json", "json_schema", "regex")), form.get("value")
    param = form.name("value")
    if kind == "json_schema":
        inner = form.inner("value")
        value = None if inner is None else inner.get("schema")
    if kind != "regex":
        if not isinstance(value, dict | str):
            raise form.wrong("value", "a JSON schema")
        return constrained(value, param)
    return _constrained(regex, form.required_text("value"), param)


def _constrained(grammar_of: Callable[[str], Grammar], text: str, param: str) -> Constrained:
    try:
        return Constrained(_kept(grammar_of, text), param)
    except TallowError as error:
        raise api_error(error, param) from error


@lru_cache(maxsize=64)
def _kept(grammar_of: Callable[[str], Grammar], text: str) -> Grammar:
    """Return the grammar of a text; one that was used lately has its states."""
    return grammar_of(text)


def _required_call(schemas: str) -> Grammar:
    return required_call(json.loads(schemas))


def _text_or_calls(schemas: str) -> Grammar:
    return text_or_calls(json.loads(schemas))
