"""Handwritten digits."""

from __future__ import annotations

from tallow.data import MNIST
from tallow.errors import UnsupportedError
from tallow.keras.datasets.images import Part, load


def load_data(path: str = "mnist.npz") -> tuple[Part, Part]:
    """(x_train, y_train), (x_test, y_test); see `images.load`.

    Args:
        path: the default one. The files are those that `tallow.data.MNIST` reads.

    Shapes:  x (60000, 28, 28), y (60000); 10000 to test with
    Raises:  UnsupportedError for another path
    """
    if path != "mnist.npz":
        raise UnsupportedError(
            f"mnist.load_data: path={path!r}, and no .npz file is read",
            mend="put the four files of MNIST into ~/.keras/datasets",
        )
    return load(MNIST)
