"""Where the package mpich, which brings an MPI library from PyPI, is installed."""

from __future__ import annotations

import importlib.metadata
import os


def file_of_mpich(*names: str) -> str | None:
    """The path of a file of the package mpich, wherever that is installed."""
    try:
        files = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((os.path.realpath(file.locate()) for file in files if file.name in names), None)
