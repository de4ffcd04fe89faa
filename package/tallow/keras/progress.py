"""The progress bar of `fit`, `evaluate` and `predict`.

In a terminal or notebook, which can overwrite a line, the bar is redrawn on one line, at most ten times a second;
elsewhere, as in a file, the completed line is written at the end. In a web page, Pyodide's `sys.stdout` accepts whole
lines only and counts as a file; a page whose console supports carriage returns declares it with
`pyodide.setStdout({ write, isatty: true })`.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Iterable
from typing import Any, TextIO

from tallow.keras.messages import print_message
from tallow.keras.settings import is_interactive_logging_enabled

NOTEBOOKS = ("ipykernel", "pyodide_kernel")  # their streams support carriage returns, although they are not terminals
BOLD, GREEN, GREY, PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[37m", "\x1b[0m"


class Progbar:
    """Show the progress of a loop, with the estimated remaining time and current values.

    Args:
        target: the number of steps, or None if it is unknown.
        width: the width of the bar, in characters.
        verbose: 1 for a bar, 2 for a line at the end, 0 for nothing.
        interval: the minimum time between two redraws, in seconds.
        stateful_metrics: names of values to show unchanged; others are averaged over the steps.
        stateless_metrics: instead, names of values to average; others are shown unchanged.
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.1,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.unit_name = unit_name
        self._stateful = set(stateful_metrics or ())
        self._stateless = None if stateless_metrics is None else set(stateless_metrics)
        self._values: dict[str, Any] = {}  # stateful: the last value; else (sum over the steps, steps)
        self._seen = 0
        self._start = time.monotonic()
        self._after_first: float | None = None
        self._last_drawn = -math.inf
        self._drawn_width = 0  # width of the current line, which can be overwritten; 0 for none

    def update(self, current: int, values: Iterable[tuple[str, Any]] = (), finalize: bool | None = None) -> None:
        """Record that `current` steps are done, with their values; redraw if the interval has passed."""
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        self._gather(current, values, finalize)
        now = time.monotonic()
        if current == 1 and self._after_first is None:
            self._after_first = now
        if finalize and self.verbose:
            self._write(self._line(current, now, finalize), end="\n")
        elif self.verbose == 1 and now - self._last_drawn >= self.interval and _can_draw():
            self._write(self._line(current, now, finalize), end="")
            self._last_drawn = now

    def add(self, n: int, values: Iterable[tuple[str, Any]] = ()) -> None:
        """Record `n` more steps; see `update`."""
        self.update(self._seen + n, values)

    def abandon(self) -> None:
        """End the current line, so that later output starts on a new one."""
        if self._drawn_width:
            self._drawn_width = 0
            sys.stdout.write("\n")
            sys.stdout.flush()

    def _gather(self, current: int, values: Iterable[tuple[str, Any]], finalize: bool) -> None:
        steps = max(current - self._seen, 1)
        for name, value in values:
            is_averaged = name in self._stateless if self._stateless is not None else name not in self._stateful
            if finalize or not is_averaged:
                self._values[name] = value
            else:
                total, count = self._values.get(name, (0.0, 0))
                self._values[name] = (total + float(value) * steps, count + steps)
        self._seen = current

    # ------------------------------------------------------------------------------------------------------ the line

    def _line(self, current: int, now: float, finalize: bool) -> list[tuple[str, str]]:
        """Return pieces of text, each with its color."""
        per_unit = self._seconds_per_unit(current, now)
        elapsed = now - self._start
        count = f"{current:{len(str(self.target))}d}/{self.target}" if self.target else f"{current:7d}/Unknown"
        metrics = "".join(f" - {name}: {_format_number(value)}" for name, value in self._values.items())
        if self.verbose == 2:
            return [(f"{count} - {elapsed:.0f}s - {_format_duration(per_unit)}/{self.unit_name}{metrics}", "")]
        remaining = None if finalize or not self.target else per_unit * (self.target - current)
        duration = f"{elapsed:.0f}s" if remaining is None else _format_remaining(remaining)
        bar = [(" ", ""), *self._bar(min(current / self.target, 1))] if self.target else []
        return [
            (count, BOLD),
            *bar,
            (f" {duration}", BOLD),
            (f" {_format_duration(per_unit)}/{self.unit_name}{metrics}", ""),
        ]

    def _bar(self, fraction: float) -> list[tuple[str, str]]:
        done, rest = ("━", "━" if has_colours(sys.stdout) else "─") if can_print("━─", sys.stdout) else ("=", ".")
        length = int(self.width * fraction)
        return [(done * length, GREEN), (rest * (self.width - length), GREY)]

    def _seconds_per_unit(self, current: int, now: float) -> float:
        """Return the mean time per step, without the first step if there are more, as it is often the slowest."""
        if not current:
            return 0.0
        if self._after_first is None or current == 1:
            return (now - self._start) / current
        return (now - self._after_first) / (current - 1)

    def _write(self, pieces: list[tuple[str, str]], end: str) -> None:
        if not is_interactive_logging_enabled():
            print_message("".join(text for text, _ in pieces))
            return
        if can_overwrite(sys.stdout):
            if not end:
                pieces = _truncate(pieces, _columns() - 1)
            width = sum(len(text) for text, _ in pieces)
            coloured = has_colours(sys.stdout)
            line = "".join(
                f"{colour}{text}{PLAIN}" if colour and coloured and text else text for text, colour in pieces
            )
            over = "\r" if self._drawn_width else ""
            sys.stdout.write(over + line + " " * (self._drawn_width - width) + end)
            self._drawn_width = 0 if end else width
        else:
            sys.stdout.write("".join(text for text, _ in pieces) + end)
        sys.stdout.flush()


# ----------------------------------------------------------------------------------------------- capabilities of stdout


def _can_draw() -> bool:
    return is_interactive_logging_enabled() and can_overwrite(sys.stdout)


def can_overwrite(stream: TextIO) -> bool:
    """Return whether a carriage return moves to the start of the current line."""
    if in_notebook(stream):
        return True
    return getattr(stream, "isatty", bool)() and os.environ.get("TERM") != "dumb"


def in_notebook(stream: TextIO) -> bool:
    """Return whether the stream is a notebook's."""
    return type(stream).__module__.partition(".")[0] in NOTEBOOKS


def has_colours(stream: TextIO) -> bool:
    """Return whether the stream supports colors."""
    return can_overwrite(stream) and not os.environ.get("NO_COLOR")


def can_print(text: str, stream: TextIO) -> bool:
    """Return whether the stream's encoding has all characters of a text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns() -> int:
    return 10_000 if in_notebook(sys.stdout) else shutil.get_terminal_size().columns


def _truncate(pieces: list[tuple[str, str]], columns: int) -> list[tuple[str, str]]:
    """Truncate the pieces to one line, because a carriage return cannot go back to a previous one."""
    truncated = []
    for text, colour in pieces:
        truncated.append((text[: max(columns, 0)], colour))
        columns -= len(text)
    return truncated


# ------------------------------------------------------------------------------------------------------------ numbers


def _format_number(value: Any) -> str:
    if isinstance(value, tuple):
        total, count = value
        value = total / count
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return f"{number:.4f}" if abs(number) >= 1e-3 or number == 0 else f"{number:.4e}"


def _format_duration(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


def _format_remaining(seconds: float) -> str:
    total = int(seconds)
    if total > 3600:
        return f"{total // 3600}:{total % 3600 // 60:02d}:{total % 60:02d}"
    return f"{total // 60}:{total % 60:02d}" if total > 60 else f"{total}s"
