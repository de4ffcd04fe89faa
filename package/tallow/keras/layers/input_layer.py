"""Where a model begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError, UnsupportedError
from tallow.keras.layers.layer import Layer
from tallow.keras.settings import floatx
from tallow.keras.shapes import Shape, is_shape
from tallow.keras.symbolic import KerasTensor, Node


class InputLayer(Layer):
    """A model's input, as a layer; `keras.Input` makes one and returns its tensor.

    Args:
        shape: of a sample, with None where any size fits.
        batch_size: the size of every batch; any by default.
        batch_shape: both in one, instead of them.
    """

    def __init__(
        self,
        shape: Sequence[int | None] | None = None,
        batch_size: int | None = None,
        dtype: Any = None,
        sparse: Any = None,
        ragged: Any = None,
        batch_shape: Sequence[int | None] | None = None,
        optional: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=floatx() if dtype is None else dtype)
        if sparse or ragged:
            raise ArgumentError(f"{self.name}: sparse and ragged inputs are not supported", mend="pad to one shape")
        if optional:
            raise UnsupportedError(f"{self.name}: optional inputs are not supported", mend="make two models")
        if (shape is None) == (batch_shape is None):
            raise ArgumentError(f"{self.name}: give shape or batch_shape", mend="keras.Input(shape=(784,))")
        whole: Any = batch_shape
        if shape is not None:
            whole = (batch_size, *shape) if isinstance(shape, list | tuple) else shape
        if not is_shape(whole):
            raise ArgumentError(
                f"{self.name}: {shape if shape is not None else batch_shape!r} is no shape",
                mend="give a tuple of sizes, such as shape=(784,), with None where any size fits",
            )
        self.batch_shape: Shape = tuple(whole)
        self.built = True
        tensor = KerasTensor(self.batch_shape, self._dtype, name=self.name)
        Node(self, (), {}, tensor)

    def call(self) -> None:
        raise ArgumentError(f"{self.name} is a model's input and is not called", mend="call the model")

    def get_config(self) -> dict[str, Any]:
        return {"batch_shape": list(self.batch_shape), "dtype": self.dtype, "name": self.name}


def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    dtype: Any = None,
    sparse: Any = None,
    ragged: Any = None,
    batch_shape: Sequence[int | None] | None = None,
    name: str | None = None,
    optional: bool = False,
) -> KerasTensor:
    """A tensor without values, to describe a model with: call layers with it, and make a Model of the two ends.

    Args:    as InputLayer

    Example:
        >>> from tallow import keras
        >>> x = keras.Input(shape=(4,))
        >>> model = keras.Model(x, keras.layers.Dense(2)(x))
        >>> model.count_params()
        10
    """
    layer = InputLayer(shape, batch_size, dtype, sparse, ragged, batch_shape, optional, name)
    outputs: KerasTensor = layer.inbound_nodes[0].outputs
    return outputs
