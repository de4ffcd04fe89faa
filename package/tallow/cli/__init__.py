"""The command `tallow`. Each subcommand is a module with `add_arguments` and `run`; its docstring is the help text."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from tallow.cli.parser import BAD_INPUT, command_module, parse
from tallow.cli.terminal import escaped_streams, one_line, report, set_encoding_errors, warnings_as_lines
from tallow.errors import TallowError

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
        arguments = parse(argv)
        program = f"tallow {arguments.command}"
        set_encoding_errors("replace")  # the terminal's encoding may lack a character
        with warnings_as_lines(program):
            status = command_module(arguments.command).run(arguments)
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
