"""MNIST and Fashion-MNIST."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from tallow.core.tensor import wrap
from tallow.data.download import fetch
from tallow.data.idx import read_idx
from tallow.data.images import ImageDataset, Pixels, check_labels, find_file, look_for

SIZE = 28


class MNIST(ImageDataset):
    """Handwritten digits: 60 000 training images, 10 000 test images. Arguments as for `ImageDataset`.

    The files (`train-images-idx3-ubyte` and so on, plain or as `.gz`) are searched in `root/MNIST/raw`, as in
    torchvision, in `root/MNIST` and in `root`.

    Shapes:  data (N, 28, 28), a tensor; items (1, 28, 28)
    Source:  LeCun, Cortes & Burges, http://yann.lecun.com/exdb/mnist/
    """

    mirrors: ClassVar[list[str]] = [
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ]
    resources: ClassVar[list[tuple[str, str]]] = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes: ClassVar[list[str]] = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]

    @property
    def raw_folder(self) -> str:
        """The folder for downloaded files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    def download(self) -> None:
        for name, md5 in self.resources:
            path = os.path.join(self.raw_folder, name)
            if look_for(self._folders(), _names(name.removesuffix(".gz"))) in (None, path):
                fetch([mirror + name for mirror in self.mirrors], path, md5)

    def _read(self) -> tuple[Any, Any]:
        part = "train" if self.train else "t10k"
        images = read_idx(self._find(f"{part}-images-idx3-ubyte"), (SIZE, SIZE))
        where = self._find(f"{part}-labels-idx1-ubyte")
        labels = read_idx(where, ())
        check_labels(labels, len(images), len(self.classes), where)
        return wrap(images), wrap(labels.astype(np.int64))

    def _find(self, stem: str) -> str:
        return find_file(type(self).__name__, self._folders(), _names(stem))

    def _folders(self) -> list[str]:
        return [self.raw_folder, os.path.dirname(self.raw_folder), self.root]

    def _pixels(self, index: Any) -> Pixels:
        return self.data.numpy()[index][..., None, :, :]


def _names(stem: str) -> list[str]:
    return [stem, f"{stem}.gz"]


class FashionMNIST(MNIST):
    """Articles of clothing, in the format of `MNIST`.

    Source:  Xiao, Rasul & Vollgraf 2017, arXiv:1708.07747
    """

    mirrors: ClassVar[list[str]] = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources: ClassVar[list[tuple[str, str]]] = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes: ClassVar[list[str]] = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]
