"""CIFAR-10, in either of its two distributed formats.

    cifar-10-batches-py    data_batch_1 to data_batch_5, test_batch: Python 2 pickles of a dict with "data", an array
                           (N, 3072), and "labels", a list
    cifar-10-batches-bin   the same names with .bin: for each image one byte for the label and 3072 for the pixels

Pixels are 1024 red, 1024 green and 1024 blue values, each row by row.

Source:  Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow.data.download import fetch
from tallow.data.images import ImageDataset, Pixels, check_labels, find_file, look_for
from tallow.errors import CheckpointError, DatasetError
from tallow.io.pytorch_names import NAMES, set_state
from tallow.io.regular import regular
from tallow.io.source import open_source
from tallow.io.unpickler import Unpickler

PIXELS = 3 * 32 * 32
MAX_MEMBER_BYTES = 2**26  # of the archive; the largest is 31 MB


class CIFAR10(ImageDataset):
    """Photographs of ten classes: 50 000 for training, 10 000 for testing. Arguments as for `ImageDataset`.

    The files are searched in `root/cifar-10-batches-py`, as in torchvision, in `root/cifar-10-batches-bin` and in
    `root`. Pickles are read without running code.

    Shapes:  data (N, 32, 32, 3), a NumPy array, as in torchvision; items (3, 32, 32)
    """

    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    md5 = "c58f30108f718f92721af3b95e74349a"
    base_folder = "cifar-10-batches-py"
    binary_folder = "cifar-10-batches-bin"
    batches: ClassVar[dict[bool, list[str]]] = {
        True: [f"data_batch_{i}" for i in range(1, 6)],
        False: ["test_batch"],
    }
    classes: ClassVar[list[str]] = [
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ]

    def download(self) -> None:
        names = [*self.batches[True], *self.batches[False]]
        if all(look_for(self._folders(), _names(name)) for name in names):
            return
        archive = os.path.join(self.root, os.path.basename(self.url))
        fetch([self.url], archive, self.md5)
        unpack(archive, [f"{self.base_folder}/{name}" for name in names], self.root)

    def _read(self) -> tuple[Any, Any]:
        parts = []
        for name in self.batches[self.train]:
            path = find_file(type(self).__name__, self._folders(), _names(name))
            pixels, labels = _read_binary(path) if path.endswith(".bin") else _read_pickle(path)
            check_labels(labels, len(pixels), len(self.classes), path)
            parts.append((pixels.reshape(-1, 3, 32, 32), labels))
        images, targets = (np.concatenate(part) for part in zip(*parts, strict=True))
        return images.transpose(0, 2, 3, 1), targets.tolist()

    def _folders(self) -> list[str]:
        return [*(os.path.join(self.root, name) for name in (self.base_folder, self.binary_folder)), self.root]

    def _pixels(self, index: Any) -> Pixels:
        return np.moveaxis(self.data[index], -1, -3)


def _names(batch: str) -> list[str]:
    return [batch, f"{batch}.bin"]


def _read_binary(path: str) -> tuple[Pixels, npt.NDArray[np.int64]]:
    data, name = open_source(path)
    if not len(data) or len(data) % (1 + PIXELS):
        raise DatasetError(f"{name}: {len(data)} bytes are not a multiple of {1 + PIXELS}", hint="download it again")
    records = data.reshape(-1, 1 + PIXELS)
    return records[:, 1:], records[:, 0].astype(np.int64)


def _read_pickle(path: str) -> tuple[Pixels, npt.NDArray[np.int64]]:
    data, name = open_source(path)
    try:
        batch = Unpickler(data.data, name, NAMES, _no_storage, set_state, encoding="latin-1").load()
    except CheckpointError as error:
        raise DatasetError(f"{name} is not a batch of CIFAR-10: {error}", hint="download it again") from error
    pixels, labels = (batch.get(key) if type(batch) is dict else None for key in ("data", "labels"))
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (PIXELS,):
        raise DatasetError(f"{name} is not a batch of CIFAR-10: its data are not bytes (N, {PIXELS})")
    if type(labels) is not list or not all(type(label) is int and abs(label) < 2**31 for label in labels):
        raise DatasetError(f"{name} is not a batch of CIFAR-10: its labels are not a list of integers")
    return pixels, np.array(labels, np.int64)


def _no_storage(identity: Any) -> Any:
    raise CheckpointError("it refers to a storage")


def unpack(archive: str, members: list[str], folder: str) -> None:
    """Extract files of a tar archive, all or none.  Raises: DatasetError if one is missing or not a plain file"""
    try:
        with (
            open(archive, "rb", opener=regular) as file,
            tarfile.open(fileobj=file) as tar,
            tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as temporary,
        ):
            entries = [tar.getmember(name) for name in members]
            if any(not member.isfile() or member.size > MAX_MEMBER_BYTES for member in entries):
                raise DatasetError(f"{archive} has entries that are not the files of the data set")
            tar.extractall(temporary, entries, filter="data")
            for name in members:
                target = os.path.join(folder, name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.replace(os.path.join(temporary, name), target)
    except (tarfile.TarError, KeyError, EOFError, OSError) as error:
        raise DatasetError(f"{archive} cannot be unpacked: {error}", hint="delete it, and download it again") from error
