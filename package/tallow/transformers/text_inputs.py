"""The texts of a tokenizer's call, as its library takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError, warn
from tallow.transformers.padding import check_count


def as_batch(text: Any, pair: Any, is_split: bool) -> tuple[list[Any], bool]:
    """Return the texts or pairs as the library takes them, and whether they were a batch.

    Raises:  ArgumentError, ArgumentTypeError for what is no text, and for batches of different lengths
    """
    for value in (text, pair):
        if value is not None and not _is_text(value):
            raise ArgumentError(
                f"a text is {type(value).__name__}: {value!r:.80}",
                hint="pass a string or a list of strings; words with is_split_into_words=True",
            )
    if isinstance(text, str) or (is_split and not (text and isinstance(text[0], list | tuple))):
        return [(text, pair)] if pair else [text], False
    if isinstance(pair, str):
        raise ArgumentTypeError("text_pair is a string, but text is a batch", hint="pass a list of the same length")
    if pair is None:
        return list(text), True
    if len(text) != len(pair):
        raise ArgumentError(f"{len(text)} texts, but {len(pair)} in text_pair", hint="pass one for each text")
    return list(zip(text, pair, strict=True)), True


def replace_options(options: dict[str, Any], more: Mapping[str, Any], unknown: Mapping[str, Any]) -> None:
    """Replace the options of a call by `tokenizer_kwargs`, in place.

    Args:    unknown: further arguments of the call
    Raises:  ArgumentError for numbers that are no counts
    Warns:   TallowWarning for arguments that the call does not have
    """
    if dropped := [*unknown, *(name for name in more if name not in options)]:
        warn(f"a tokenizer's call has no argument {', '.join(dropped)}; it has no effect")
    options |= {name: value for name, value in more.items() if name in options}
    for name in ("stride", "max_target_length"):
        check_count(name, options[name])


def _is_text(value: Any, depth: int = 0) -> bool:
    """Return whether the first item of nested lists is a string, as far as the library looks."""
    if isinstance(value, str):
        return True
    return isinstance(value, list | tuple) and depth < 3 and (not value or _is_text(value[0], depth + 1))
