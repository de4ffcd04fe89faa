"""The fields that say what a text must be one of: a JSON schema, a regular expression."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tallow.errors import TallowError
from tallow.generation.constrain import Constraint, Grammar, json_schema, regex
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
    try:
        return Constrained(_json_schema(schema if isinstance(schema, str) else json.dumps(schema)), param)
    except TallowError as error:
        raise api_error(error, param) from error


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
    try:
        return Constrained(_regex(form.required_text("value")), param)
    except TallowError as error:
        raise api_error(error, param) from error


@lru_cache(maxsize=32)
def _json_schema(text: str) -> Grammar:
    return json_schema(text)


@lru_cache(maxsize=32)
def _regex(pattern: str) -> Grammar:
    return regex(pattern)
