"""Handwritten digits."""

from __future__ import annotations

from tallow.data import MNIST
from tallow.keras.datasets.images import Part, load


def load_data(path: str = "mnist.npz") -> tuple[Part, Part]:
    """(x_train, y_train), (x_test, y_test); see `images.load`.

    Args:
        path: taken for Keras' sake; the files are those that `tallow.data.MNIST` reads.

    Shapes:  x (60000, 28, 28), y (60000); 10000 to test with
    """
    return load(MNIST)
