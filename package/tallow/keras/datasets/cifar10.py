"""CIFAR-10: photographs of ten classes of objects."""

from __future__ import annotations

from tallow.data import CIFAR10
from tallow.keras.datasets.images import Part, load


def load_data() -> tuple[Part, Part]:
    """Return (x_train, y_train), (x_test, y_test); see `images.load`.

    Shapes:  x (50000, 32, 32, 3), y (50000, 1) for training; 10000 images for testing
    """
    (x_train, y_train), (x_test, y_test) = load(CIFAR10)
    return (x_train, y_train[:, None]), (x_test, y_test[:, None])
