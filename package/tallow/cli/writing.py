"""Write a file atomically, with a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from tallow.cli.progress import Progress
from tallow.io.atomic import atomic_write

CHUNK = 16 << 20  # bytes written between updates of the progress bar


@contextmanager
def writing(target: Path, total: int) -> Iterator[BinaryIO]:
    """Open a file that replaces `target` if the block succeeds, and show a progress bar."""
    with atomic_write(target) as file, Progress(total, f"writing {target.name}", "B") as progress:
        yield cast(BinaryIO, _ProgressWriter(file, progress))


class _ProgressWriter:
    """A binary file that reports the number of bytes written."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress

    def write(self, data: Any) -> int:
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else view
        for start in range(0, view.nbytes, CHUNK):
            self._progress.advance(self._file.write(view[start : start + CHUNK]))
        return view.nbytes

    def writelines(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self.write(part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
