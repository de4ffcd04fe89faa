"""The values in a model's answer: numbers, JSON, tags and lines, by the names that response templates have for them.

Source:  transformers 5.24, `utils/chat_parsing`
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tallow.errors import ArgumentError, InvalidKeyError
from tallow.text.patterns import check

# Private-use characters that stand around the number of a text which is no JSON yet.
_OPEN, _CLOSE = "\x01", "\x02"
_PLACE = re.compile(r"\{(\w+(?:\.\w+)*)\}")


def compiled(pattern: Any, what: str) -> re.Pattern[str]:
    """Return the pattern of a template.

    Raises:  ArgumentError for what is no pattern; TokenizerError for one that may take exponential time
    """
    if not isinstance(pattern, str):
        raise ArgumentError(f"{what}: a pattern is {type(pattern).__name__}", hint="write a string")
    check(pattern)
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ArgumentError(f"{what}: {pattern!r:.200} is no pattern: {error}") from error


def _text(text: str, args: Mapping[str, Any]) -> str:
    return text.strip() if args.get("strip", True) else text


def _bool(text: str, args: Mapping[str, Any]) -> bool:
    return _text(text, args).lower() in ("true", "1")


def _json(text: str, args: Mapping[str, Any]) -> Any:
    """Read JSON, in which keys may lack quotes (`unquoted_keys`) and texts have other marks (`string_delims`)."""
    delimiters = args.get("string_delims", [])
    if delimiters and (_OPEN in text or _CLOSE in text):
        raise ArgumentError("json: the text has control characters 1 or 2", hint="leave string_delims out")
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[1])
        return f"{_OPEN}{len(held) - 1}{_CLOSE}"

    source = text
    for start, end in delimiters:
        source = re.sub(f"{re.escape(start)}(.*?){re.escape(end)}", hold, source, flags=re.DOTALL)
    if args.get("unquoted_keys", False):
        source = re.sub(r"(?<=[{,])(\w+):", r'"\1":', source)
    if held:
        source = re.sub(f"{_OPEN}(\\d+){_CLOSE}", lambda match: json.dumps(held[int(match[1])]), source)
    try:
        return json.loads(source)
    except (ValueError, RecursionError) as error:
        if args.get("allow_non_json"):
            return _text(text, args)
        raise ArgumentError(f"json: {text!r:.200} is no JSON: {error}") from error


def _tags(text: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Read tags by a `tag_pattern` with the groups `key` and `value`; several of a key are one value or a list."""
    if args.get("tag_pattern") is None:
        raise ArgumentError("xml-inline without content_args: tag_pattern")
    pattern = compiled(args["tag_pattern"], "xml-inline: tag_pattern")
    if "key" not in pattern.groupindex:
        raise ArgumentError(f"xml-inline: {pattern.pattern!r:.200} has no group named key")
    found: dict[str, Any] = {}
    several: set[str] = set()
    for match in pattern.finditer(text):
        key, value = match["key"], _inner(match.groupdict().get("value", ""), args)
        if key not in found or not args.get("merge_duplicates", False):
            found[key] = value
        elif key in several or isinstance(found[key], list):
            found[key].append(value)
        else:
            found[key] = [found[key], value]
            several.add(key)
    return found


def _lines(text: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Read lines of a key and a value."""
    between = args.get("kv_sep", ":")
    found = {}
    for line in text.split(args.get("line_sep", "\n")):
        key, mark, value = _text(line, args).partition(between)
        if mark:
            found[_text(key, args)] = _inner(_text(value, args), args)
    return found


def _inner(text: str, args: Mapping[str, Any]) -> Any:
    """Return a value within another, by the parser that `value_parser` names."""
    parser = args.get("value_parser")
    return text if parser is None else PARSERS[parser.get("name", "text")](text, parser.get("args", {}))


PARSERS: dict[str, Callable[[str, Mapping[str, Any]], Any]] = {
    "text": _text,
    "int": lambda text, args: int(_text(text, args)),
    "float": lambda text, args: float(_text(text, args)),
    "bool": _bool,
    "json": _json,
    "xml-inline": _tags,
    "kv-lines": _lines,
}
# The parsers whose text is their value, so that parts of it can be shown as they come.
SHOWN = frozenset({"text", "int", "float", "bool"})


def check_form(form: Any, what: str) -> None:
    """Raise ArgumentError for a form of values in which a text has more than a place such as "{content}"."""
    if isinstance(form, dict | list):
        for each in form.values() if isinstance(form, dict) else form:
            check_form(each, what)
    elif isinstance(form, str) and _PLACE.search(form) and not _PLACE.fullmatch(form):
        raise ArgumentError(
            f"{what}: transform {form!r:.200} has a place within a text", hint='write "{content}" alone'
        )


def fill(form: Any, values: Mapping[str, Any]) -> Any:
    """Return a form of values with the places such as "{name}" and "{content.key}" filled.

    Raises:  InvalidKeyError for a place without a value
    """
    if isinstance(form, dict):
        return {key: fill(each, values) for key, each in form.items()}
    if isinstance(form, list):
        return [fill(each, values) for each in form]
    match = _PLACE.fullmatch(form) if isinstance(form, str) else None
    if match is None:
        return form
    value: Any = values
    for key in match[1].split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise InvalidKeyError(f"transform: nothing for {form}", hint=f"there are {', '.join(map(str, values))}")
        value = value[key]
    return value
