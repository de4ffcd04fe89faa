"""The input layer of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError, UnsupportedError
from tallow.keras.layers.layer import Layer
from tallow.keras.settings import floatx
from tallow.keras.shapes import Shape, is_shape
from tallow.keras.symbolic import KerasTensor, Node


class InputLayer(Layer):
    """A model's input, as a layer; `keras.Input` creates one and returns its tensor.

    Args:
        shape: the shape of a sample, with None for any size.
        batch_size: the size of every batch; any size by default.
        batch_shape: the shape of a batch, instead of shape and batch_size.
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
            raise ArgumentError(
                f"{self.name}: sparse and ragged inputs are not supported", hint="pad the inputs to one shape"
            )
        if optional:
            raise UnsupportedError(f"{self.name}: optional inputs are not supported", hint="build two models")
        if (shape is None) == (batch_shape is None):
            raise ArgumentError(
                f"{self.name}: pass either shape or batch_shape", hint="for example keras.Input(shape=(784,))"
            )
        full_shape: Any = batch_shape
        if shape is not None:
            full_shape = (batch_size, *shape) if isinstance(shape, list | tuple) else shape
        if not is_shape(full_shape):
            raise ArgumentError(
                f"{self.name}: {shape if shape is not None else batch_shape!r} is not a shape",
                hint="pass a tuple of sizes, such as shape=(784,), with None for any size",
            )
        self.batch_shape: Shape = tuple(full_shape)
        self.built = True
        tensor = KerasTensor(self.batch_shape, self._dtype, name=self.name)
        Node(self, (), {}, tensor)

    def call(self) -> None:
        raise ArgumentError(f"{self.name} is a model's input and is not called", hint="call the model")

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
    """Create a symbolic tensor: call layers with it, then build a Model from the input and the output.

    Args:    as in InputLayer

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
