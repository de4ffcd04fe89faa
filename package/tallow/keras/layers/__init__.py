"""Layers under Keras' names."""

from __future__ import annotations

from tallow.keras.layers.dense import Dense, Embedding
from tallow.keras.layers.input_layer import Input, InputLayer
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.variable import Variable

__all__ = ["Dense", "Embedding", "Input", "InputLayer", "InputSpec", "Layer", "Variable"]
