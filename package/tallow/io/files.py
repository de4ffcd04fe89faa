"""Saving and loading in one line: `tl.save` and `tl.load` pick the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io import gguf, llama2c, npz, pytorch, pytorch_write, safetensors
from tallow.io.atomic import atomic_write
from tallow.io.location import MapLocation, relocate
from tallow.io.source import Opened, Path, Source, open_source
from tallow.io.zip_archive import EMPTY_MAGIC, ZipArchive
from tallow.io.zip_archive import MAGIC as ZIP_MAGIC
from tallow.tensor import Tensor, wrap

FORMATS = "safetensors, PyTorch's (.pt, .pth), .npz, .npy, .gguf, llama2c's .bin"


def save(obj: Any, f: Path | BinaryIO) -> None:
    """Write `obj` in the format that the path's extension names; PyTorch's if it is another, or `f` is a file.

        .safetensors   a dict of tensors
        .npz           a dict of tensors
        .npy           a tensor
        others         PyTorch's zip format: tensors, and containers of them and of plain values

    A path is replaced in one step at the end, or left as it was on an error.

    Raises:  ArgumentTypeError and ArgumentError for what the format cannot hold

    Example:
        >>> import io
        >>> import tallow as tl
        >>> file = io.BytesIO()
        >>> tl.save({"weight": tl.ones(2), "epoch": 3}, file)
        >>> tl.load(file.getvalue())
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not isinstance(f, str | os.PathLike):
        pytorch_write.save(obj, f)
        return
    extension = os.path.splitext(os.fspath(f))[1]
    with atomic_write(f) as file:
        write(obj, file, extension)


def write(obj: Any, file: BinaryIO, extension: str) -> None:
    """As `save`, to a binary file that can seek, in the format that `extension` names."""
    extension = extension.lower()
    if extension == ".gguf":
        raise ArgumentError("GGUF is read, not written", mend="save as .safetensors")
    WRITERS.get(extension, pytorch_write.save)(obj, file)


def load(
    f: Source | BinaryIO,
    map_location: MapLocation = None,
    pickle_module: None = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    device: Any = None,
) -> Any:
    """Read a file of any format that `tallow.io` has; its content tells which.

    A path is mapped where the platform maps files: a tensor is read when it is used, and writing to it does not change
    the file. A GGUF file comes as a mapping whose tensors are made when they are asked for. The tensors of a llama2.c
    checkpoint have the names of `run.c`.

    Args:
        f: a path, the bytes of a file, or a binary file, which is read to its end.
        map_location: where the tensors go, as torch.load's; by default where they were saved from.
        weights_only: taken for PyTorch's sake. Nothing is ever run, whatever it says.
        mmap: False reads a path at once, instead of mapping it.
        device: another name for `map_location`, safetensors'.

    Raises:  OSError when a path cannot be read; CheckpointError when the file is truncated or malformed, of no known
        format, or holds what is not read
    """
    if pickle_module is not None:
        raise ArgumentTypeError("load: pickle_module is not taken: no pickle is ever run", mend="leave it out")
    if device is not None:
        if map_location is not None:
            raise ArgumentTypeError("load: map_location and device say the same thing", mend="pass one of them")
        map_location = device
    opened = _open(f, mmap)
    start = opened.data[:9].tobytes()
    if start[:4] in (ZIP_MAGIC, EMPTY_MAGIC):
        return _load_archive(ZipArchive(*opened), map_location)
    if pytorch.is_legacy(opened.data):
        return pytorch.load(opened, map_location)
    if start[:4] == gguf.MAGIC:
        return gguf.load(opened, map_location)
    if start[:6] == npz.MAGIC:
        return relocate(npz.load_array(opened), "cpu", map_location)
    if start[8:] == b"{":
        return _relocate_all(safetensors.load(opened), map_location)
    if llama2c.is_checkpoint(opened.data):  # last: what it is told by is weaker than the others' marks
        arrays = llama2c.load(opened).arrays
        return _relocate_all({name: wrap(array) for name, array in arrays.items()}, map_location)
    raise CheckpointError(
        f"{opened.name}: a file of {len(opened.data)} bytes in no format that is read; it starts with {start!r}",
        mend=f"the formats are {FORMATS}; a download may have failed",
    )


def _open(f: Source | BinaryIO, mmap: bool | None) -> Opened:
    if isinstance(f, str | os.PathLike):
        return Opened(np.fromfile(f, dtype=np.uint8), os.fspath(f)) if mmap is False else open_source(f)
    read = getattr(f, "read", None)
    return open_source(f if read is None else read())  # type: ignore[arg-type]  # a file has `read`


def _load_archive(archive: ZipArchive, map_location: MapLocation) -> Any:
    if pytorch.object_entry(archive):
        return pytorch.load_archive(archive, map_location)
    return _relocate_all(npz.load_archive(archive), map_location)


def _relocate_all(tensors: dict[str, Tensor], map_location: MapLocation) -> dict[str, Tensor]:
    return {name: relocate(tensor, "cpu", map_location) for name, tensor in tensors.items()}


def _write_safetensors(obj: Any, file: BinaryIO) -> None:
    file.writelines(safetensors.encode(_as_dict(obj, ".safetensors")))


def _write_npz(obj: Any, file: BinaryIO) -> None:
    npz.save(_as_dict(obj, ".npz"), file)


def _as_dict(obj: Any, extension: str) -> Mapping[str, Tensor]:
    if not isinstance(obj, Mapping) or not all(isinstance(name, str) for name in obj):
        raise ArgumentTypeError(
            f"a {extension} file holds a dict from names to tensors, not a {type(obj).__name__}",
            mend="pass model.state_dict(), or save as .pt",
        )
    return obj


WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    ".safetensors": _write_safetensors,
    ".npz": _write_npz,
    ".npy": npz.save_array,
}
