"""Check and read the user's files: images and labels in MNIST's format, and weights."""

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
MAX_BYTES = 64 << 20  # MNIST's images take 47 MB
MAX_COUNT = 70_000
HINT = "choose files such as train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz"


def check_weights(head: bytes) -> None:
    """Raise CheckpointError for a file that does not start as safetensors do, with a length and a JSON object."""
    if head[8:9] != b"{":
        raise CheckpointError(
            "this is not a safetensors file",
            hint="choose weights saved by this page or by tallow.io.safetensors.save",
        )


def check_head(name: str, head: bytes, size: int | None) -> None:
    """Raise DatasetError for a file that cannot be a dataset, before all of it is read."""
    if size is not None and size > MAX_BYTES:
        raise DatasetError(f"{name} has {size / 1e6:.0f} MB, more than MNIST's files", hint=HINT)
    axes, count = _peek(name, head)
    if axes not in (1, 3):
        raise DatasetError(f"{name} has {axes} axes; images have 3 and labels 1", hint=HINT)
    if count > MAX_COUNT:
        raise DatasetError(f"{name} says it has {count} items, more than MNIST", hint=HINT)


def read_pair(files: dict[str, Bytes]) -> tuple[tl.Tensor, tl.Tensor, tuple[str, str]]:
    """Read images (N, 28, 28) and labels (N,), uint8, from two files in any order; also return the files' names.

    Raises:
        DatasetError: the files are damaged, not a pair, or not images of 28 by 28 pixels and labels 0 to 9.
    """
    (first, axes), (second, second_axes) = ((name, _peek(name, file[:64].tobytes())[0]) for name, file in files.items())
    if axes == second_axes:
        kind = "images" if axes == 3 else "labels"
        raise DatasetError(f"{first} and {second} both contain {kind}", hint=HINT)
    names = (first, second) if axes == 3 else (second, first)
    images = _read(names[0], files[names[0]], (SIDE, SIDE))
    labels = _read(names[1], files[names[1]], ())
    if len(images) != len(labels):
        raise DatasetError(
            f"{names[0]} has {len(images)} images, but {names[1]} {len(labels)} labels", hint="choose a pair"
        )
    if len(labels) < CLASSES:
        raise DatasetError(f"{len(labels)} images are too few to learn from", hint=f"choose {CLASSES} or more")
    if labels.max() >= CLASSES:
        i = int((labels >= CLASSES).argmax())
        raise DatasetError(f"{names[1]}: label {labels[i]} of image {i} is not a digit", hint="choose labels 0 to 9")
    return tl.from_numpy(images), tl.from_numpy(labels), names


def _peek(name: str, head: bytes) -> tuple[int, int]:
    """Return the number of axes in a file's header, and the length of the first."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(head, 8)
        except zlib.error as error:
            raise DatasetError(f"{name} cannot be unzipped: {error}", hint="download it again") from error
    if len(head) < 8 or head[:3] != b"\0\0\x08":
        raise DatasetError(f"{name} is not in MNIST's format (idx)", hint=HINT)
    return struct.unpack(">3xBI", head[:8])


def _read(name: str, data: Bytes, item: tuple[int, ...]) -> Bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.idx")
        path.write_bytes(data)
        try:
            return read_idx(str(path), item)
        except DatasetError as error:
            # read_idx names the temporary copy; the message should name the chosen file.
            message = str(error).removesuffix(f"\n  hint: {error.hint}").replace(str(path), name)
            raise DatasetError(message, hint=error.hint) from error
