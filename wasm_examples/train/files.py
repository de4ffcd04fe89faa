"""Files as a reader brings them, images and labels in MNIST's format, or weights: what they say is checked."""

from __future__ import annotations

import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow.data.idx import GZIP_MAGIC, read_idx
from tallow.errors import CheckpointError, DatasetError

Bytes = npt.NDArray[np.uint8]

SIDE = 28
CLASSES = 10
MAX_BYTES = 64 << 20  # MNIST's images have 47 MB
MAX_COUNT = 70_000
MEND = "choose files such as train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz"


def check_weights(head: bytes) -> None:
    """Raises: CheckpointError for a file that does not begin as safetensors do, with a length and a JSON object."""
    if head[8:9] != b"{":
        raise CheckpointError(
            "this is not a safetensors file",
            mend="choose weights that this page saved, or that tallow.io.safetensors.save has written",
        )


def check_head(name: str, head: bytes, size: int | None) -> None:
    """Raises: DatasetError for a file that is not worth reading to its end."""
    if size is not None and size > MAX_BYTES:
        raise DatasetError(f"{name} has {size / 1e6:.0f} MB, more than MNIST's files", mend=MEND)
    axes, count = _peek(name, head)
    if axes not in (1, 3):
        raise DatasetError(f"{name} has {axes} axes; images have 3 and labels 1", mend=MEND)
    if count > MAX_COUNT:
        raise DatasetError(f"{name} says it has {count} items, more than MNIST", mend=MEND)


def read_pair(files: dict[str, Bytes]) -> tuple[tl.Tensor, tl.Tensor, tuple[str, str]]:
    """Images (N, 28, 28) and labels (N,) of two files in any order, uint8, with the files' names.

    Raises:  DatasetError for files that are damaged, not a pair, or not of 28 by 28 pixels and the digits 0 to 9
    """
    (one, axes), (other, other_axes) = ((name, _peek(name, file[:64].tobytes())[0]) for name, file in files.items())
    if axes == other_axes:
        kind = "images" if axes == 3 else "labels"
        raise DatasetError(f"{one} and {other} are both files of {kind}", mend=MEND)
    names = (one, other) if axes == 3 else (other, one)
    images = _read(names[0], files[names[0]], (SIDE, SIDE))
    labels = _read(names[1], files[names[1]], ())
    if len(images) != len(labels):
        raise DatasetError(
            f"{names[0]} has {len(images)} images, but {names[1]} {len(labels)} labels", mend="choose a pair"
        )
    if len(labels) < CLASSES:
        raise DatasetError(f"{len(labels)} images are too few to learn from", mend=f"choose {CLASSES} or more")
    if labels.max() >= CLASSES:
        at = int((labels >= CLASSES).argmax())
        raise DatasetError(f"{names[1]}: label {labels[at]} of image {at} is no digit", mend="choose labels 0 to 9")
    return tl.from_numpy(images), tl.from_numpy(labels), names


def _peek(name: str, head: bytes) -> tuple[int, int]:
    """How many axes a file says it has, and how long the first is."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, 8)
        except zlib.error as error:
            raise DatasetError(f"{name} cannot be unzipped: {error}", mend="fetch it again") from error
    if len(head) < 8 or head[:3] != b"\0\0\x08":
        raise DatasetError(f"{name} is not in MNIST's format (idx)", mend=MEND)
    return struct.unpack(">3xBI", head[:8])


def _read(name: str, data: Bytes, item: tuple[int, ...]) -> Bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.idx")
        path.write_bytes(data)
        try:
            return read_idx(str(path), item)
        except DatasetError as error:
            # The reader names the copy, and here the name that was chosen says something.
            message = str(error).removesuffix(f"\n  mend: {error.mend}").replace(str(path), name)
            raise DatasetError(message, mend=error.mend) from error
