"""The folder that Python works in: the files that the user brings, and those that code writes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

PAGE = Path(__file__).parent  # the modules of the page
FOLDER = PAGE / "work"
MAX_LISTED = 500
MAX_NAME_BYTES = 255


class WorkingFolder:
    """The files of the page. The worker calls `check` and `load` (web/worker/bridge.py), the page the others."""

    def __init__(self) -> None:
        FOLDER.mkdir(exist_ok=True)
        os.chdir(FOLDER)
        # Last, so that no file replaces a module; an empty entry is the current folder.
        sys.path[:] = [str(PAGE), *filter(None, sys.path), str(FOLDER)]

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        _place(name)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Write files into the folder."""
        for name, data in files.items():
            _place(name).write_bytes(data.tobytes())
        return {}

    def list(self) -> list[dict[str, Any]]:
        """Return the names and sizes of the files, those of its folders included."""
        found: list[dict[str, Any]] = []
        for folder, folders, names in os.walk(FOLDER):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if len(found) == MAX_LISTED:
                    return found
                if path.is_file():
                    found.append({"name": path.relative_to(FOLDER).as_posix(), "bytes": path.stat().st_size})
        return found

    def remove(self, name: str) -> None:
        """Delete a file."""
        (FOLDER / name).unlink(missing_ok=True)


def _place(name: str) -> Path:
    """Return where a file of this name goes. Raise if it cannot be the name of a file in the folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise ValueError(f"{name[:60]!r} cannot be the name of a file: rename it")
    if (FOLDER / name).is_dir():
        raise ValueError(f"{name!r} is a folder in the working folder: rename the file")
    return FOLDER / name
