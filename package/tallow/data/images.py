"""The base class of small image data sets: items, batches, and the search for files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow.core.tensor import Tensor, wrap
from tallow.data.dataset import Dataset, Samples
from tallow.errors import DatasetError
from tallow.io.source import Path

Pixels = npt.NDArray[np.uint8]


class ImageDataset(Dataset[tuple[Any, Any]]):
    """Images of one size with class labels, as in torchvision; images are tensors, not PIL images.

    Args:
        root: the folder with the files, in torchvision's layout or all in one folder.
        train: whether to load the training set or the test set.
        transform: called with each image.
        target_transform: called with each label.
        download: download missing files to `root`. Needs the extra `data`.

    Attributes:
        data: all images, uint8.
        targets: the labels.
        classes: the names of the classes; `class_to_idx` maps them to labels.

    Shapes:  an item is (image (C, H, W), int); `tensors()` returns (N, C, H, W) and (N,)
    Dtypes:  images are float32, from 0 to 1
    Raises:  DatasetError if a file is missing, truncated or malformed
    """

    classes: ClassVar[list[str]]
    data: Any
    targets: Any

    def __init__(
        self,
        root: Path,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        self.root = os.fspath(root)
        self.train = train
        self.transform = transform
        self.target_transform = target_transform
        if download:
            self.download()
        self.data, self.targets = self._read()

    def download(self) -> None:
        """Download the missing files."""
        raise NotImplementedError

    def _read(self) -> tuple[Any, Any]:
        """Return `data` and `targets`."""
        raise NotImplementedError

    def _pixels(self, index: Any) -> Pixels:
        """Return the pixels (..., C, H, W) of one image, or of an array of indices."""
        raise NotImplementedError

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class name."""
        return {name: i for i, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = _scaled(self._pixels(index)), int(self.targets[index])
        return (
            image if self.transform is None else self.transform(image),
            target if self.target_transform is None else self.target_transform(target),
        )

    def __getitems__(self, indices: Sequence[int]) -> Sequence[tuple[Any, Any]]:
        overridden = type(self).__getitem__ is not ImageDataset.__getitem__
        if overridden or self.transform is not None or self.target_transform is not None:
            return [self[index] for index in indices]
        return Samples(self, indices, self._batch)

    def _batch(self, indices: Sequence[int]) -> list[Tensor]:
        rows = np.asarray(indices, np.int64)
        if isinstance(self.targets, Tensor):
            labels = self.targets.numpy()[rows]
        else:
            labels = np.array([self.targets[i] for i in indices])
        return [_scaled(self._pixels(rows)), wrap(labels.astype(np.int64))]

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Return all images and labels, without the transforms: `TensorDataset(*mnist.tensors())`."""
        return _scaled(self._pixels(slice(None))), wrap(np.array(self.targets, np.int64))

    def __repr__(self) -> str:
        part = "train" if self.train else "test"
        return f"{type(self).__name__}({self.root!r}, {part}, {len(self)} images)"


def _scaled(pixels: Pixels) -> Tensor:
    return wrap(np.true_divide(pixels, np.float32(255), dtype=np.float32, order="C"))


def look_for(folders: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the first path of a file in `folders` with one of the `names`, or None."""
    paths = (os.path.join(folder, name) for folder in folders for name in names)
    return next(filter(os.path.isfile, paths), None)


def find_file(dataset: str, folders: Sequence[str], names: Sequence[str]) -> str:
    """Return a path as `look_for` does.  Raises: DatasetError, which lists the folders, if there is none"""
    path = look_for(folders, names)
    if path is None:
        raise DatasetError(
            f"{dataset}: no {' or '.join(names)} in {', '.join(map(repr, folders))}",
            hint="pass download=True, or put the file there",
        )
    return path


def check_labels(labels: npt.NDArray[Any], images: int, classes: int, where: str) -> None:
    """Raise DatasetError unless each image has a label, and each label a class."""
    if len(labels) != images:
        raise DatasetError(
            f"{where}: {len(labels)} labels for {images} images", hint="check that the files belong together"
        )
    if images and not 0 <= labels.min() <= labels.max() < classes:
        wrong = int(labels.max() if labels.max() >= classes else labels.min())
        raise DatasetError(f"{where}: label {wrong}; labels must be from 0 to {classes - 1}")
