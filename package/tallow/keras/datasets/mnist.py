"""MNIST: handwritten digits."""

from __future__ import annotations

from tallow.data import MNIST
from tallow.errors import UnsupportedError
from tallow.keras.datasets.images import Part, load


def load_data(path: str = "mnist.npz") -> tuple[Part, Part]:
    """Return (x_train, y_train), (x_test, y_test); see `images.load`.

    Args:
        path: only the default is supported. The files are those that `tallow.data.MNIST` reads.

    Shapes:  x (60000, 28, 28), y (60000) for training; 10000 images for testing
    Raises:  UnsupportedError for another path
    """
    if path != "mnist.npz":
        raise UnsupportedError(
            f"mnist.load_data: path={path!r}: reading .npz files is not supported",
            hint="copy the four MNIST files to ~/.keras/datasets",
        )
    return load(MNIST)
