"""Import modules that are not there at the start: their part is loaded when they are imported first (site/parts.py)."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

SITE_PACKAGES = "/lib/python3.14/site-packages"
STDLIB = "/lib/python3.14"
MAGIC = b"\x1f\x8b"
GZIP = 31  # zlib's code for the format, with the largest window


class LaterParts(MetaPathFinder):
    """The last finder: it is asked for a module that no other one finds."""

    def __init__(self, parts: dict[str, str], read: Callable[[str], Any], unpack: Callable[[bytes], None]) -> None:
        self._parts = parts
        self._read, self._unpack = read, unpack
        self._loaded: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        part = self._parts.get(fullname)
        if part is None:
            return None
        if part not in self._loaded:
            self._load(part, fullname)
        if path is not None:
            # A package of the standard library is in an archive, and its other modules are in a folder.
            path = [*path, f"{STDLIB}/{fullname.rpartition('.')[0].replace('.', '/')}"]
        return PathFinder.find_spec(fullname, path, target)

    def _load(self, part: str, module: str) -> None:
        try:
            archive = self._read(part).to_bytes()
        except Exception as error:
            raise ImportError(
                f"{module} could not be loaded: check the connection; if the site has been updated, reload the page",
                name=module,
            ) from error
        self._unpack(zlib.decompress(archive, GZIP) if archive.startswith(MAGIC) else archive)  # some hosts decompress
        self._loaded.add(part)
        # Not importlib.invalidate_caches, which imports a module of another part.
        for finder in sys.path_importer_cache.values():
            if isinstance(finder, FileFinder):
                finder.invalidate_caches()


def install(read: Callable[[str], Any], unpack: Callable[[bytes], None]) -> None:
    """Load parts from now on. `read` returns a part's archive, `unpack` writes the files of a tar archive."""
    parts = json.loads(Path(SITE_PACKAGES, "later.json").read_text(encoding="utf-8"))
    sys.meta_path.append(LaterParts(parts, read, unpack))
