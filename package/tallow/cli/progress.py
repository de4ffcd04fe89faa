"""A progress bar on stderr; nothing if stderr is not a terminal."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import TracebackType
from typing import Any

# tqdm options by unit. Without a format, tqdm prints 2.5 s as 2.4999999999999996.
OPTIONS: dict[str, dict[str, Any]] = {
    "B": {"unit_scale": True},
    "s": {"bar_format": "{desc}: {percentage:3.0f}%|{bar}| {n:.1f}/{total:.1f} {unit} [{elapsed}<{remaining}]"},
}


class Progress:
    """Progress towards a total: a tqdm bar if tqdm is installed, else a percentage. It disappears at the end.

    Args:
        total: amount of work, in `unit`: "B" for bytes, "s" for seconds, or the plural of a noun.
        label: description of the work.

    Example:
        with Progress(3, "talk.mp3", "s") as progress:
            progress.advance(1.5)
            progress.print("a line on stdout, above the bar")
    """

    def __init__(self, total: float, label: str, unit: str) -> None:
        self._bar: Any = None
        self._total = total
        self._done = 0.0
        if not sys.stderr.isatty() or total <= 0:
            return
        if find_spec("tqdm") is None:
            self._bar = _Percentage(total, label)
            return
        from tqdm import tqdm

        options = OPTIONS.get(unit, {})
        self._bar = tqdm(total=total, desc=label, unit=unit, leave=False, dynamic_ncols=True, **options)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, done: float) -> None:
        """Add `done` to the progress."""
        self.advance_to(self._done + done)

    def advance_to(self, done: float) -> None:
        """Set the progress to `done`, at most the total: a file's headers may exceed it."""
        done = min(done, self._total)
        if self._bar is not None:
            self._bar.update(done - self._done)
        self._done = done

    def print(self, line: str) -> None:
        """Print a line to stdout. On a terminal it appears above the bar."""
        if self._bar is not None:
            self._bar.clear()
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        if self._bar is not None:
            self._bar.refresh()


class _Percentage:
    """The methods of tqdm that `Progress` calls, for a plain percentage."""

    def __init__(self, total: float, label: str) -> None:
        self._total, self._label = total, label
        self._done = 0.0
        self._shown = ""
        self.refresh()

    def update(self, done: float) -> None:
        self._done += done
        if self._line() != self._shown:
            self.refresh()

    def refresh(self) -> None:
        self._shown = self._line()
        print(f"\r{self._shown}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        print(f"\r{' ' * len(self._shown)}", end="", file=sys.stderr)
        print("\r", end="", file=sys.stderr, flush=True)

    close = clear

    def _line(self) -> str:
        return f"{self._label}: {self._done / self._total:4.0%}"
