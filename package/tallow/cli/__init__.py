"""The command `tallow`. Each subcommand is a module with `add_arguments` and `run`; its first line is its help."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import tallow
from tallow.errors import TallowError

# Modules of this folder; only the one that is asked for is imported, and all of them for the list of commands.
COMMANDS = ("generate", "chat", "embed", "fill-mask", "transcribe", "train", "convert", "inspect", "info", "demo")

BAD_INPUT = 2  # also argparse's
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; the exit status is 0, 2 for bad input, 130 after Ctrl-C, or 141 when stdout has no reader."""
    if sys.stderr is None:  # `2>&-` closed it; print(file=None) would write to stdout
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until exit, as the stream it stands for
    argv = sys.argv[1:] if argv is None else argv
    named = [command for command in argv[:1] if command in COMMANDS]
    arguments = _parser(named or COMMANDS).parse_args(argv)
    try:
        if sys.stdout is None:  # `>&-` closed it
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "stdout")
        status = _module(arguments.command).run(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _settle_stdout()
        return BROKEN_PIPE
    except (TallowError, OSError) as error:
        print(f"tallow {arguments.command}: error: {_one_line(error)}", file=sys.stderr)
        _settle_stdout()
        return BAD_INPUT


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


def _parser(commands: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tallow", description=tallow.__doc__)
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
        module.add_arguments(subparser)
    return parser


def _one_line(error: Exception) -> str:
    """A TallowError's message and its mend on one line; the list of a checkpoint's faults stays a list."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error).replace("\n  mend: ", "; ")
