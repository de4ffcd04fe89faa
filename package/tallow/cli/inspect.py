"""`tallow inspect`: say what a file of weights holds, without loading it.

Reads safetensors, PyTorch's files, NumPy's, GGUF, llama2c checkpoints, and folders of Hugging Face's models.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from tallow.cli.terminal import print_json
from tallow.io.contents import Contents, Entry, contents

LONGEST = 100  # characters of a value that are shown
UNITS = ("bytes", "KB", "MB", "GB", "TB")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file, or the folder of a model")
    parser.add_argument("--json", action="store_true", help="print everything as JSON, values in full")


def run(arguments: argparse.Namespace) -> int:
    """Raises: CheckpointError, OSError"""
    found = contents(arguments.file)
    if arguments.json:
        print_json(asdict(found), indent=1)
    else:
        _print(found)
    return 0


def _print(found: Contents) -> None:
    print(f"format  {found.format}")
    if found.metadata:
        width = max(map(len, found.metadata))
        print()
        for name, value in found.metadata.items():
            print(f"{_printable(name):<{width}}  {_short(value)}")
    if found.tensors:
        rows = [
            (_printable(e.name), e.dtype, " x ".join(map(str, e.shape)) or "scalar", size(e.bytes))
            for e in found.tensors
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        print()
        for name, dtype, shape, nbytes in rows:
            print(f"{name:<{widths[0]}}  {dtype:<{widths[1]}}  {shape:<{widths[2]}}  {nbytes:>{widths[3]}}")
    print(f"\n{_total(found.tensors)}")


def _total(entries: list[Entry]) -> str:
    dtypes = ", ".join(dict.fromkeys(entry.dtype for entry in entries))
    elements = sum(entry.count for entry in entries)
    nbytes = size(sum(entry.bytes for entry in entries))
    return f"{len(entries)} tensors, {elements:,} elements, {nbytes}" + (f" ({dtypes})" if dtypes else "")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, list | tuple) and len(text) > LONGEST:
        text = f"[{len(value):,} values] {text}"
    text = _printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _printable(text: str) -> str:
    """A file's words could move the cursor or worse."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def size(nbytes: int) -> str:
    """Bytes in the unit in which they are 1 or more."""
    value = float(nbytes)
    for unit in UNITS:
        if value < 1000 or unit == UNITS[-1]:
            break
        value /= 1000
    return f"{nbytes:,} bytes" if unit == UNITS[0] else f"{value:.1f} {unit}"
