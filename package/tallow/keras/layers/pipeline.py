"""A sequence of layers as one layer, without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.keras.layers.layer import Layer


class Pipeline(Layer):
    """Apply layers in order, for example to preprocess data. Unlike other layers, it starts in training mode.

    Args:    layers: each takes the output of the previous one.
    """

    supports_masking = True

    def __init__(self, layers: Sequence[Any], name: str | None = None) -> None:
        super().__init__(name=name)
        self.layers = list(layers)
        self.train()

    def build(self, input_shape: Any) -> None:
        """Do nothing: the layers build themselves when they are called."""

    def call(self, inputs: Any, training: bool = True) -> Any:
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        return None  # the result keeps the mask of the last layer

    def compute_output_shape(self, input_shape: Any) -> Any:
        for layer in self.layers:
            input_shape = layer.compute_output_shape(input_shape)
        return input_shape
