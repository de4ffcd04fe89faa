"""The command `tallow`. Each subcommand is a module with `add_arguments` and `run`; its docstring is the help text."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

import tallow
from tallow.cli.terminal import escaped_streams, one_line, report, set_encoding_errors, warnings_as_lines
from tallow.errors import TallowError

# Modules of this folder. Running a command imports only its module; `tallow --help` imports all of them.
COMMANDS = (
    *("generate", "chat", "embed", "fill-mask", "classify", "transcribe", "serve"),
    *("train", "convert", "inspect", "info", "demo"),
)

BAD_INPUT = 2  # as in argparse
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    The exit status is 0, 1 if part of the work failed, 2 for bad input, 130 after Ctrl-C, 141 when stdout has no
    reader, or 143 after SIGTERM.
    """
    _open_missing_streams()
    with escaped_streams():
        return _status((sys.argv[1:] if argv is None else argv) or ["--help"])


def _status(argv: Sequence[str]) -> int:
    """Run a subcommand, report the error that ends it, and return the exit status."""
    program = "tallow"
    try:
        if sys.stdout is None:  # closed by `>&-`
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "stdout")
        arguments = _parse(argv)
        program = f"tallow {arguments.command}"
        set_encoding_errors("replace")  # the terminal's encoding may lack a character
        with warnings_as_lines(program):
            status = _module(arguments.command).run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _settle_stdout()
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _settle_stdout()
        return BROKEN_PIPE
    except (TallowError, OSError, MemoryError) as error:
        report(f"{program}: error: {one_line(error)}")
        _settle_stdout()
        return BAD_INPUT


def _open_missing_streams() -> None:
    """Replace streams closed by `2>&-` and `<&-`, which are None in Python: print(file=None) would write to stdout."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - stays open until exit, as stderr would
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115


def _settle_stdout() -> None:
    """Flush stdout, or redirect it to /dev/null if that fails: Python's flush at exit would print a traceback."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"tallow.cli.{command.replace('-', '_')}")


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


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    named = [command for command in argv[:1] if command in COMMANDS]
    arguments, unknown = _parser(named or COMMANDS).parse_known_args(argv)
    if unknown:  # argparse would point to the help of `tallow`, which lacks the command's options
        arguments.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def _parser(commands: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="tallow", description=tallow.__doc__)
    parser.add_argument("--version", action="version", version=f"tallow {tallow.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name in commands:
        module = _module(name)
        summary, _, description = (module.__doc__ or "").partition("\n")
        summary = summary.split(": ", 1)[1].rstrip(".")
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n{description}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        subparser.set_defaults(refuse=subparser.error)
        module.add_arguments(subparser)
    return parser
