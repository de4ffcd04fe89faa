"""Find files of the PyPI package mpich, which contains an MPI library."""

from __future__ import annotations

import importlib.metadata
import os


def file_of_mpich(*names: str) -> str | None:
    """Return the path of a file of the package mpich, or None."""
    try:
        files = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((os.path.realpath(file.locate()) for file in files if file.name in names), None)
