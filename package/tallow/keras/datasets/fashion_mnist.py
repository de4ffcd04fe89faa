"""Fashion-MNIST: articles of clothing, in the format of MNIST."""

from __future__ import annotations

from tallow.data import FashionMNIST
from tallow.keras.datasets.images import Part, load


def load_data() -> tuple[Part, Part]:
    """Return (x_train, y_train), (x_test, y_test); see `images.load`.

    Shapes:  x (60000, 28, 28), y (60000) for training; 10000 images for testing
    """
    return load(FashionMNIST)
