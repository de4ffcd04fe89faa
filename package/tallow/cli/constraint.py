"""Options that constrain a text to a JSON schema, a regular expression or a grammar."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tallow.errors import ArgumentError
from tallow.io.regular import regular_or_pipe

if TYPE_CHECKING:
    from tallow.generation.constrain import Grammar

MAX_BYTES = 1 << 20  # of a file with a schema or a grammar


def add_constraint_options(parser: argparse.ArgumentParser) -> None:
    """Add the options --json-schema, --grammar and --regex, of which one can be given."""
    group = parser.add_argument_group("form of the text").add_mutually_exclusive_group()
    group.add_argument("--json-schema", metavar="FILE", help="JSON that conforms to the schema in FILE")
    group.add_argument("--grammar", metavar="FILE", help="text of a grammar, in the form that llama.cpp reads (GBNF)")
    group.add_argument("--regex", metavar="PATTERN", help="text that a regular expression matches as a whole")


def constraint(arguments: argparse.Namespace) -> Grammar | None:
    """Return the texts of the options of `add_constraint_options`, or None.

    Raises:  OSError, ArgumentError for a file that cannot be read; GrammarError for an invalid form
    """
    if arguments.json_schema is arguments.grammar is arguments.regex is None:
        return None
    from tallow.generation.constrain import grammar, json_schema, regex

    if arguments.json_schema is not None:
        return json_schema(_read(arguments.json_schema))
    if arguments.grammar is not None:
        return grammar(_read(arguments.grammar))
    return regex(arguments.regex)


def _read(name: str) -> str:
    with open(name, "rb", opener=regular_or_pipe) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ArgumentError(f"{name} is larger than {MAX_BYTES >> 20} MiB", hint="use a smaller schema or grammar")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{name} is not UTF-8: {error}", hint="save it as UTF-8") from error
