"""The metadata of a distribution named torch, for `importlib.metadata` while the stand-in is installed."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import tallow
from tallow.compat.version import __version__


class TorchDistribution(Distribution):
    """PyTorch, as far as programs ask: its name and the version whose API tallow follows."""

    def read_text(self, filename: str) -> str | None:
        """Return the content of METADATA; None for other files."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"

    def locate_file(self, path: Any) -> Any:
        """Return where a file of the distribution would be."""
        return Path(tallow.__file__).parent.parent / path
