"""Datasets in Keras' form: `(x_train, y_train), (x_test, y_test) = keras.datasets.mnist.load_data()`."""

from __future__ import annotations

from tallow.lazy_names import names_of

LAZY = {name: f"tallow.keras.datasets.{name}" for name in ("cifar10", "fashion_mnist", "mnist")}

__all__ = list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
