"""A stderr for servers: one that is full, closed, or a pipe that nobody reads holds up no request."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

MOST_WAITING = 1 << 20  # characters: thousands of entries of a log
END_S = 1.0  # to write the last ones


class PatientStream:
    """A text stream whose `write` neither waits nor raises.

    A thread writes to `stream`. Texts that come while MOST_WAITING characters wait are left out, and so are those that
    cannot be written; how many is written once there is room.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._texts: deque[str] = deque()
        self._waiting = self._left_out = 0
        self._is_closed = False
        self._changed = threading.Condition()
        threading.Thread(target=self._write_all, name="tallow stderr", daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text some time."""
        with self._changed:
            if self._waiting > MOST_WAITING:
                self._left_out += 1
            else:
                self._append(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line some time."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: each text is written as soon as it can be."""

    def drain(self) -> None:
        """Wait until all is written, for at most END_S."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, END_S)

    def close(self) -> None:
        """Write what waits, as `drain`, and end the thread."""
        self.drain()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _append(self, text: str) -> None:
        self._texts.append(text)
        self._waiting += len(text)
        self._changed.notify_all()

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._texts or self._is_closed)
                if self._is_closed:
                    return
                text = self._texts.popleft()
            with suppress(OSError, ValueError):  # no space, no reader, or closed
                self._stream.write(text)
                self._stream.flush()
            with self._changed:
                self._waiting -= len(text)
                if self._left_out and not self._waiting:
                    self._append(f"tallow: stderr was not read in time; {self._left_out} texts are left out\n")
                    self._left_out = 0
                self._changed.notify_all()


@contextmanager
def patient_stderr() -> Iterator[Callable[[], None]]:
    """Let nobody wait for stderr in the block; yield a function that waits a second until it has been written."""
    usual = sys.stderr
    patient = PatientStream(usual)
    sys.stderr = cast(TextIO, patient)
    try:
        yield patient.drain
    finally:
        sys.stderr = usual
        patient.close()
