"""The entry point of the command `tallow`: Ctrl-C ends it with one line, also while NumPy is being imported.

A package of its own, because importing any module of `tallow` imports NumPy first.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main() -> int:
    """Run the command; the exit status is that of `tallow.cli.main`."""
    is_foreground = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nohup and the shell's & ignore it
    if is_foreground:
        signal.signal(signal.SIGINT, _exit)
    from tallow.cli import main as run  # takes a while, in which Ctrl-C would be a traceback

    if is_foreground:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = run()
    if is_foreground:
        signal.signal(signal.SIGINT, _exit)  # while Python ends, nobody catches KeyboardInterrupt
    return status


def _exit(_number: int, _frame: FrameType | None) -> None:
    """End without an exception: a module that is being imported could catch it, or print it."""
    with suppress(OSError):  # stderr may be closed
        os.write(2, b"\ntallow: interrupted\n" if os.isatty(2) else b"tallow: interrupted\n")
    os._exit(INTERRUPTED)
