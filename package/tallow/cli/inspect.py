"""`tallow inspect`: show the contents of a weights file without loading it, and check the weights for NaN.

Supports safetensors, PyTorch, NumPy, GGUF, ONNX and llama2c files, and Hugging Face model folders. Of an ONNX file it
also shows the operators with their counts, inputs and outputs, the size of each layer, and what is quantised. For the
folder of a model that tallow has, it also reports the weights that loading drops, keeps apart, renames or makes new.
With --strict, a folder's config.json must hold only entries that tallow knows; without it, loading reports the others
in a warning.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tallow import dtypes
from tallow.cli import onnx_lines
from tallow.cli.onnx_target import tensors_of
from tallow.cli.terminal import print_json, size_text
from tallow.errors import TallowError, escaped, escaped_line
from tallow.io.contents import Contents, Entry, contents
from tallow.io.gguf_layout import TYPES
from tallow.io.model_folder import has_weights
from tallow.io.non_finite import non_finite, non_finite_in
from tallow.models.auto import AutoModel, model_class
from tallow.models.config import CONFIG
from tallow.models.encoders.sentence_folder import modules_of, parts_of
from tallow.models.loading_report import LoadingReport
from tallow.onnx import summary as onnx_summary
from tallow.onnx.summary import OnnxContents

LONGEST = 100  # characters shown of a value
SIZED = {*TYPES.values()}  # formats of GGUF whose sizes are known
CONVERTED = {dtype.name for dtype in dtypes.FLOAT8}  # when a model is loaded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow inspect`."""
    parser.add_argument("file", metavar="FILE", help="a file, or a model's folder")
    parser.add_argument("--json", action="store_true", help="print JSON, with values in full")
    parser.add_argument(
        "--check", action="store_true", help="read all weights, and report tensors that hold NaN or infinities"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a folder if its model does not know an entry of its config.json",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the metadata and the tensors. Return 1 if a check finds tensors that are not finite.

    Raises:  CheckpointError, OSError
    """
    path = Path(arguments.file)
    if arguments.strict:
        _check_config(path)
    summary = _contents(path)
    damaged = _damaged(path) if arguments.check else None
    report = _loading_report(path, summary)
    if arguments.json:
        loading = {} if report is None else {"loading_report": asdict(report)}
        print_json(asdict(summary) | loading | ({} if damaged is None else {"non_finite": damaged}), indent=1)
    else:
        _print(summary)
        if report is not None and str(report):
            print(f"\n{escaped(str(report))}")
        for name in damaged or ():
            print(f"{escaped_line(name)} holds NaN or infinities")
        if damaged == []:
            print("all weights are finite")
    return 1 if damaged else 0


def _loading_report(path: Path, summary: Contents) -> LoadingReport | None:
    """Return the report of the model in a folder; None for a file, for a folder that tallow does not load, and for one
    with dtypes that loading converts, which takes memory."""
    if not (path / CONFIG).is_file() or any(entry.dtype in CONVERTED for entry in summary.tensors):
        return None
    try:
        return AutoModel.from_pretrained(path).loading_report
    except (TallowError, OSError):  # what the folder holds is still worth showing
        return None


def _check_config(path: Path) -> None:
    """Read the config.json of a model's folder, or of the transformer in a sentence-transformers folder, strictly.

    Raises:  CheckpointError
    """
    folders = [place for kind, place in modules_of(path) if kind == "Transformer"] or [path]
    for folder in folders:
        model_class(folder).config_class.from_json(folder / CONFIG, strict=True)


def _damaged(path: Path) -> list[str]:
    """Return the tensors that are not finite, named as in `_contents`."""
    if onnx_summary.is_onnx(path):
        return list(non_finite_in(tensors_of(str(path))))
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
    if onnx_summary.is_onnx(path):
        return onnx_summary.contents(path)
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
        names = list(map(escaped_line, summary.metadata))
        width = max(map(len, names))
        print()
        for name, value in zip(names, summary.metadata.values(), strict=True):
            print(f"{name:<{width}}  {_short(value)}")
    if isinstance(summary, OnnxContents):
        print("\n".join(onnx_lines.lines(summary)))
    if summary.tensors:
        rows = [
            (
                escaped_line(e.name),
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
    text = escaped_line(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
