"""The metadata of distributions that tallow stands in for, for `importlib.metadata`."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import tallow


class StandInDistribution(Distribution):
    """A distribution, as far as programs ask: its name and the version whose API tallow follows."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version

    def read_text(self, filename: str) -> str | None:
        """Return the content of METADATA; None for other files."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {self._version}\n"

    def locate_file(self, path: Any) -> Any:
        """Return where a file of the distribution would be."""
        return Path(tallow.__file__).parent.parent / path
