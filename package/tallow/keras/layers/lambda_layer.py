"""Layers made of functions: Lambda, Identity, Masking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentTypeError
from tallow.keras import activations
from tallow.keras.layers.activation import Elementwise
from tallow.keras.layers.layer import Layer
from tallow.keras.serialization import LAMBDA, refuse_code
from tallow.keras.shapes import is_shape
from tallow.tensor import Tensor


class Lambda(Layer):
    """Any function of tensors as a layer.

    A lambda cannot be saved, and is not loaded: a file holds no code. A function made by `def` is saved by its name,
    and `load_model(path, custom_objects={name: function})` puts it back.

    Args:
        output_shape: of a sample; or a function of the input's shape; by default the function is run on zeros to see.
        mask: what `compute_mask` is to return, or a function for it.
        arguments: further keyword arguments for the function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(function, dict) and function.get("class_name") == LAMBDA:
            refuse_code(f"the function of {self.name}")
        if isinstance(function, str):  # of a file: an activation is written as its name
            function = activations.get(function)
        if not callable(function):
            raise ArgumentTypeError(f"{self.name}: {function!r:.100} is not a function")
        self.function = function
        self.given_shape = output_shape
        self.mask = mask
        self.arguments = dict(arguments or {})
        self.supports_masking = mask is not None

    def call(self, inputs: Any) -> Any:
        return self.function(inputs, **self.arguments)

    def compute_output_shape(self, input_shape: Any) -> Any:
        if self.given_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self.given_shape):
            return self.given_shape(input_shape)
        batch = input_shape[0] if is_shape(input_shape) else input_shape[0][0]
        return (batch, *self.given_shape)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        if self.given_shape is None:  # the function may change the dtype too
            return self._probe(args, kwargs)
        return super().compute_output_spec(*args, **kwargs)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        return self.mask(inputs, previous_mask) if callable(self.mask) else self.mask


class Identity(Elementwise):
    """x itself."""

    def call(self, x: Any) -> Any:
        return x


class Masking(Elementwise):
    """Let layers after this one pass over the steps whose features are all `mask_value`, which become 0."""

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Tensor, previous_mask: Any = None) -> Tensor:
        return (inputs != self.mask_value).any(-1)

    def call(self, x: Tensor) -> Tensor:
        return x * self.compute_mask(x)[..., None].to(x.dtype)
