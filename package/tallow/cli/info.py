"""`tallow info`: print versions, the kernel library and devices."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
import textwrap

import numpy as np

import tallow
from tallow import devices, kernels
from tallow.cli.terminal import print_json
from tallow.errors import DeviceError

OPTIONAL = ("cupy-cuda12x", "cupy-cuda13x")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option of `tallow info`."""
    parser.add_argument("--json", action="store_true", help="print a JSON object, for a report of a fault")


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
    if arguments.json:
        print_json({**rows, "kernels": kernels.info()._asdict()})
        return 0
    width = max(map(len, rows))
    for name, value in rows.items():
        print(_row(f"{name:<{width}}  ", value))
    return 0


def _row(head: str, value: str) -> str:
    """Return a row; at a terminal, long values go on in the next lines, below their beginning."""
    if not sys.stdout.isatty():
        return head + value
    columns = shutil.get_terminal_size().columns
    return textwrap.fill(value, columns, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False)


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
