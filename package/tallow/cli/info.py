"""`tallow info`: print versions, the kernel library and devices; or whether a model loads, its size and its memory."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

import tallow
from tallow import devices, kernels
from tallow.cli.model_report import model_rows
from tallow.cli.terminal import print_json
from tallow.errors import DeviceError

OPTIONAL = ("cupy-cuda12x", "cupy-cuda13x")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tallow info`."""
    parser.add_argument(
        "model", nargs="?", help="a folder or OWNER/NAME on the Hub: print whether it loads, its size and its memory"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object, for a report of a fault")


def run(arguments: argparse.Namespace) -> int:
    """Print versions and devices, or what is known about a model, one per line."""
    if arguments.model is not None:
        return _print(model_rows(arguments.model), as_json=arguments.json)
    rows: dict[str, Any] = {
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
        rows |= {"kernels": kernels.info()._asdict()}
    return _print(rows, as_json=arguments.json)


def _print(rows: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        print_json(rows)
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
