"""The command `tallow`. Each subcommand is a module with `add_arguments` and `run`; its first line is its help."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

import tallow
from tallow.cli.terminal import one_line
from tallow.errors import TallowError

# Modules of this folder; only the one that is asked for is imported, and all of them for the list of commands.
COMMANDS = ("generate", "chat", "embed", "fill-mask", "transcribe", "train", "convert", "inspect", "info", "demo")

BAD_INPUT = 2  # also argparse's
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    The exit status is 0, 1 where a part of the work failed, 2 for bad input, 130 after Ctrl-C, 141 when stdout has no
    reader, or 143 after SIGTERM.
    """
    _open_missing_streams()
    argv = sys.argv[1:] if argv is None else argv
    program = "tallow"
    try:
        arguments = _parse(argv)
        program = f"tallow {arguments.command}"
        if sys.stdout is None:  # `>&-` closed it
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "stdout")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character should not end the output
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
        print(f"{program}: error: {one_line(error)}", file=sys.stderr)
        _settle_stdout()
        return BAD_INPUT


def _open_missing_streams() -> None:
    """`2>&-` and `<&-` close a stream, which Python has as None: print(file=None) would write to stdout."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until exit, as the stream it stands for
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115


def _settle_stdout() -> None:
    """Python flushes stdout once more at exit; what failed to be written must not fail again, with a traceback."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"tallow.cli.{command.replace('-', '_')}")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and how to get help, where argparse prints the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}\n  hint: {self.prog} --help\n")


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    named = [command for command in argv[:1] if command in COMMANDS]
    arguments, unknown = _parser(named or COMMANDS).parse_known_args(argv)
    if unknown:  # argparse's own message would be of `tallow`, whose help lacks the command's options
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
