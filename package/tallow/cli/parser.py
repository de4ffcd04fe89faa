"""The command line of `tallow`: its commands, their help, and errors in one line that say what was probably meant."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, NoReturn

import tallow

# Modules of this folder. Running a command imports only its module; `tallow --help` imports all of them.
COMMANDS = (
    *("generate", "chat", "embed", "fill-mask", "classify", "detect", "depth", "segment", "caption"),
    *("transcribe", "speak", "serve", "train", "run", "convert", "inspect", "info", "demo", "completion"),
)
HELP = ("-h", "--help")

BAD_INPUT = 2  # as in argparse


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of the command that the first one names. `tallow help chat` is `tallow chat --help`."""
    if argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    named = [command for command in argv[:1] if command in COMMANDS]
    parser = parser_of(named or COMMANDS)
    if not named and argv[0] not in (*HELP, "--version"):  # argparse misses the command, whatever came in its place
        kind = "option" if argv[0].startswith("-") else "command"
        known = (*HELP, "--version") if kind == "option" else COMMANDS
        parser.error(f"there is no {kind} {argv[0]!r}{did_you_mean(argv[0], known)}")
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:  # argparse would point to the help of `tallow`, which lacks the command's options
        near = did_you_mean(unknown[0], arguments.options) if unknown[0].startswith("-") else ""
        arguments.refuse(f"unrecognized arguments: {' '.join(unknown)}{near}")
    return arguments


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error that names the nearest known word, or nothing if none is near."""
    import difflib  # not at the top: it takes a millisecond, for errors alone

    near = difflib.get_close_matches(word.partition("=")[0], list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def parser_of(commands: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of these commands."""
    parser = _Parser(prog="tallow", description=tallow.__doc__, formatter_class=_Formatter)
    parser.add_argument("--version", action="version", version=f"tallow {tallow.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name in commands:
        module = command_module(name)
        summary, _, description = (module.__doc__ or "").partition("\n")
        summary = summary.split(": ", 1)[1].rstrip(".")
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n{description}".rstrip(),
            formatter_class=_Formatter,
        )
        module.add_arguments(subparser)
        options = [option for action in subparser._actions for option in action.option_strings]
        subparser.set_defaults(refuse=subparser.error, options=options)
    return parser


def command_module(command: str) -> ModuleType:
    """Return the module of a command, with `add_arguments` and `run`."""
    return importlib.import_module(f"tallow.cli.{command.replace('-', '_')}")


class _Formatter(argparse.HelpFormatter):
    """Wraps each paragraph of a description to the terminal; lines that are indented stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [part.strip("\n") for part in re.split(r"\n\s*\n", text)]
        is_plain = [not re.search(r"^\s", part, re.MULTILINE) for part in paragraphs]
        return "\n\n".join(
            textwrap.fill(part, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
            if plain
            else textwrap.indent(part, indent)
            for part, plain in zip(paragraphs, is_plain, strict=True)
        )


class _Parser(argparse.ArgumentParser):
    """ArgumentParser that reports an error in one line with a hint; argparse prints the whole usage."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.color = False  # Python 3.14's colours are control characters, which `escaped_streams` shows as text

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}\n  hint: {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help and version. argparse ignores that stdout has no space or no reader."""
        if file is not sys.stdout:
            return super()._print_message(message, file)
        print(message, end="", file=file, flush=True)
