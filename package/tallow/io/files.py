"""`tl.save` and `tl.load`, which choose the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.io import gguf, gguf_layout, gguf_write, llama2c, npz, pytorch, pytorch_write, safetensors, whole_objects
from tallow.io.atomic import atomic_write
from tallow.io.location import MapLocation, relocate
from tallow.io.regular import regular
from tallow.io.source import Opened, Path, Source, open_source, shown
from tallow.io.zip_archive import EMPTY_MAGIC, ZipArchive
from tallow.io.zip_archive import MAGIC as ZIP_MAGIC

FORMATS = "safetensors, PyTorch's (.pt, .pth), .npz, .npy, .gguf, llama2c's .bin"


def save(
    obj: Any,
    f: Path | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save `obj` in the format of the path's extension; in PyTorch's for other extensions and file objects.

        .safetensors   a dict of tensors
        .gguf          a dict of tensors, without metadata; tallow.io.gguf.save writes metadata too
        .npz           a dict of tensors
        .npy           a tensor
        others         PyTorch's zip format: tensors, plain values, and containers of them; or any object that has a
                       pickle, which `load(weights_only=False)` reads; always with the pickle's protocol 2

    A file is replaced atomically at the end, or the file that a link names; after an error it is unchanged. A device, a
    pipe, and a file that the system does not let replace are written over at the end.

    Raises:  ArgumentTypeError, ArgumentError for values that the format does not support

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
    """Save `obj` to a seekable binary file, in the format of `extension`."""
    extension = extension.lower()
    WRITERS.get(extension, pytorch_write.save)(obj, file)


def load(
    f: Source | BinaryIO,
    map_location: MapLocation = None,
    pickle_module: None = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    device: Any = None,
) -> Any:
    """Load a file in any format of `tallow.io`, detected from its content.

    A path is memory-mapped if the platform allows it: a tensor is read on first use, and writing to it does not change
    the file. A GGUF file is returned as a mapping that creates tensors on access. The tensors of a llama2.c checkpoint
    have the names used in `run.c`. Tensors of uint16 and float8 only hold values; convert them by
    `float()`.

    Args:
        f: a path, the bytes of a file, or a binary file object, which is read to its end.
        map_location: devices of the tensors, as in torch.load; by default those they were saved from.
        weights_only: False loads any object of a PyTorch file, such as a whole module, and runs the code that the file
            names: for files that one trusts. By default, and with None as in PyTorch, no code is run but
            what `torch.serialization.add_safe_globals` has permitted.
        mmap: False reads a file at once instead of mapping it.
        device: alias of `map_location`, as in safetensors.

    Raises:  OSError if a path cannot be read; CheckpointError if the file is truncated, malformed, or in an unknown
        format, or contains unsupported values
    """
    if getattr(pickle_module, "__name__", "pickle") != "pickle":
        raise ArgumentTypeError("load: pickle_module can be the standard library's only", hint="omit it")
    if device is not None:
        if map_location is not None:
            raise ArgumentTypeError("load: map_location and device mean the same", hint="pass one of them")
        map_location = device
    is_trusted = weights_only is not None and not weights_only
    opened = _open(f, mmap)
    start = opened.data[:9].tobytes()
    if start[:4] in (ZIP_MAGIC, EMPTY_MAGIC):
        return _load_archive(ZipArchive(*opened), map_location, whole_objects.load if is_trusted else None)
    if pytorch.is_legacy(opened.data):
        return pytorch.load(opened, map_location)
    if start[:4] == gguf_layout.MAGIC:
        return gguf.load(opened, map_location)
    if start[:6] == npz.MAGIC:
        return relocate(npz.load_array(opened), "cpu", map_location)
    if start[8:] == b"{":
        return _relocate_all(safetensors.load(opened), map_location)
    if llama2c.is_checkpoint(opened.data):  # last: it is detected by size, which is weaker than magic bytes
        arrays = llama2c.load(opened).arrays
        return _relocate_all({name: wrap(array) for name, array in arrays.items()}, map_location)
    raise CheckpointError(
        f"{opened.name}: a file of {len(opened.data)} bytes in an unknown format; it starts with {shown(start)}",
        hint=f"supported formats: {FORMATS}; or download the file again",
    )


def _open(f: Source | BinaryIO, mmap: bool | None) -> Opened:
    if isinstance(f, str | os.PathLike):
        if mmap is not False:
            return open_source(f)
        with open(f, "rb", opener=regular) as file:
            return Opened(np.fromfile(file, dtype=np.uint8), os.fspath(f))
    read = getattr(f, "read", None)
    if read is None:
        return open_source(f)  # type: ignore[arg-type]  # a file has `read`
    return open_source(bytearray(read()))  # arrays over `bytes` would be read-only


def _load_archive(archive: ZipArchive, map_location: MapLocation, read: Callable[..., Any] | None) -> Any:
    if pytorch.object_entry(archive):
        return pytorch.load_archive(archive, map_location, read=read)
    return _relocate_all(npz.load_archive(archive), map_location)


def _relocate_all(tensors: dict[str, Tensor], map_location: MapLocation) -> dict[str, Tensor]:
    return {name: relocate(tensor, "cpu", map_location) for name, tensor in tensors.items()}


def _write_safetensors(obj: Any, file: BinaryIO) -> None:
    file.writelines(safetensors.encode(_as_dict(obj, ".safetensors")))


def _write_gguf(obj: Any, file: BinaryIO) -> None:
    gguf_write.write(gguf_write.targets_of(_as_dict(obj, ".gguf")), {}, file)


def _write_npz(obj: Any, file: BinaryIO) -> None:
    npz.save(_as_dict(obj, ".npz"), file)


def _as_dict(obj: Any, extension: str) -> Mapping[str, Tensor]:
    if not isinstance(obj, Mapping) or not all(isinstance(name, str) for name in obj):
        raise ArgumentTypeError(
            f"a {extension} file stores a dict from names to tensors, not a {type(obj).__name__}",
            hint="pass model.state_dict(), or save as .pt",
        )
    return obj


WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    ".safetensors": _write_safetensors,
    ".gguf": _write_gguf,
    ".npz": _write_npz,
    ".npy": npz.save_array,
}
