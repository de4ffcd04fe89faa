"""`tallow inspect`: show the contents of a weights file without loading it, and check the weights for NaN.

Supports safetensors, PyTorch, NumPy, GGUF and llama2c files, and Hugging Face model folders.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tallow.cli.terminal import print_json, size_text
from tallow.io.contents import Contents, Entry, contents
from tallow.io.gguf_layout import TYPES
from tallow.io.model_folder import has_weights
from tallow.io.non_finite import non_finite
from tallow.models.sentence_folder import parts_of

LONGEST = 100  # characters shown of a value
SIZED = {*TYPES.values()}  # formats of GGUF whose sizes are known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow inspect`."""
    parser.add_argument("file", metavar="FILE", help="a file, or a model's folder")
    parser.add_argument("--json", action="store_true", help="print JSON, with values in full")
    parser.add_argument(
        "--check", action="store_true", help="read all weights, and report tensors that hold NaN or infinities"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the metadata and the tensors. Return 1 if a check finds tensors that are not finite.

    Raises:  CheckpointError, OSError
    """
    path = Path(arguments.file)
    summary = _contents(path)
    damaged = _damaged(path) if arguments.check else None
    if arguments.json:
        print_json(asdict(summary) | ({} if damaged is None else {"non_finite": damaged}), indent=1)
    else:
        _print(summary)
        for name in damaged or ():
            print(f"{_printable(name)} holds NaN or infinities")
        if damaged == []:
            print("all weights are finite")
    return 1 if damaged else 0


def _damaged(path: Path) -> list[str]:
    """Return the tensors that are not finite, named as in `_contents`."""
    parts = _parts(path)
    if not parts:
        return list(non_finite(path))
    return [f"{part.name}/{name}" for part in parts for name in non_finite(part)]


def _parts(path: Path) -> list[Path]:
    """Return the subfolders with the weights of a sentence-transformers folder, unless it has weights itself."""
    return [] if has_weights(path) else [part for part in parts_of(path) if has_weights(part)]


def _contents(path: Path) -> Contents:
    """Return the contents of a file or folder.

    The weights of a sentence-transformers folder may be in the subfolders that its modules.json names; each name is
    then prefixed with its subfolder.
    """
    parts = _parts(path)
    if not parts:
        return contents(path)
    metadata: dict[str, Any] = {}
    tensors: list[Entry] = []
    for part in parts:
        summary = contents(part)
        metadata |= {f"{part.name}/{name}": value for name, value in summary.metadata.items()}
        tensors += [replace(entry, name=f"{part.name}/{entry.name}") for entry in summary.tensors]
    return Contents("sentence-transformers folder", metadata, tensors)


def _print(summary: Contents) -> None:
    print(f"format  {summary.format}")
    if summary.metadata:
        width = max(map(len, summary.metadata))
        print()
        for name, value in summary.metadata.items():
            print(f"{_printable(name):<{width}}  {_short(value)}")
    if summary.tensors:
        rows = [
            (
                _printable(e.name),
                e.dtype,
                " x ".join(map(str, e.shape)) or "scalar",
                size_text(e.bytes),
                _bits(summary.format, [e]),
            )
            for e in summary.tensors
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        print()
        for name, dtype, shape, nbytes, bits in rows:
            line = f"{name:<{widths[0]}}  {dtype:<{widths[1]}}  {shape:<{widths[2]}}  {nbytes:>{widths[3]}}"
            print(f"{line}  {bits:>{widths[4]}}" if bits else line)
    print(f"\n{_total(summary.format, summary.tensors)}")


def _total(format: str, entries: list[Entry]) -> str:
    dtypes = ", ".join(dict.fromkeys(entry.dtype for entry in entries))
    elements = sum(entry.count for entry in entries)
    parts = [
        _counted(len(entries), "tensor"),
        _counted(elements, "element"),
        size_text(sum(entry.bytes for entry in entries)),
    ]
    if bits := _bits(format, entries):
        parts.append(bits)
    return ", ".join(parts) + (f" ({dtypes})" if dtypes else "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _bits(format: str, entries: list[Entry]) -> str:
    """Return the bits per weight of tensors of a GGUF file; empty for other files, whose dtypes tell them."""
    if format != "GGUF" or not entries or not all(entry.dtype in SIZED for entry in entries):
        return ""
    elements = sum(entry.count for entry in entries)
    return f"{8 * sum(entry.bytes for entry in entries) / max(elements, 1):.2f} bits per weight"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    if isinstance(value, list | tuple) and len(text) > LONGEST:
        text = f"[{len(value):,} values] {text}"
    text = _printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _printable(text: str) -> str:
    """Escape control characters: text from a file could move the cursor or worse."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
