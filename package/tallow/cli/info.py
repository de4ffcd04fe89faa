"""`tallow info`: print versions, the kernel library and devices."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform

import numpy as np

import tallow
from tallow import devices, kernels
from tallow.errors import DeviceError

OPTIONAL = ("cupy-cuda12x", "cupy-cuda13x")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print versions and devices, one per line."""
    rows = {
        "tallow": tallow.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "numpy": np.__version__,
        "kernels": str(kernels.info()),
        "cpu": f"{platform.machine()}, {os.cpu_count()} cores",
        "cuda": _cuda(),
    }
    rows |= {name: version for name in OPTIONAL if (version := _version(name))}
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")
    return 0


def _cuda() -> str:
    try:
        devices.get_backend("cuda")
    except DeviceError as error:
        return str(error).replace("\n  hint: ", "; ")
    return "available"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
