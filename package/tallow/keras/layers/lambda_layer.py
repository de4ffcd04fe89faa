"""Layers that wrap functions: Lambda, Identity, Masking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.keras import activations
from tallow.keras.layers.activation import Elementwise
from tallow.keras.layers.layer import Layer
from tallow.keras.serialization import LAMBDA, refuse_code
from tallow.keras.shapes import is_shape


class Lambda(Layer):
    """Wrap a function of tensors as a layer.

    A lambda cannot be saved or loaded, because files hold no code. A function defined with `def` is saved by its name;
    `load_model(path, custom_objects={name: function})` restores it.

    Args:
        output_shape: the output shape of a sample, or a function of the input shape; by default the function is called
            with zeros to find out.
        mask: the result of `compute_mask`, or a function that returns it.
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
        if isinstance(function, str):  # from a file, which stores an activation by its name
            function = activations.get(function)
        if not callable(function):
            raise ArgumentTypeError(f"{self.name}: {function!r:.100} is not callable")
        self.function = function
        self.output_shape_spec = output_shape
        self.mask = mask
        self.arguments = dict(arguments or {})
        self.supports_masking = mask is not None

    def call(self, inputs: Any) -> Any:
        return self.function(inputs, **self.arguments)

    def compute_output_shape(self, input_shape: Any) -> Any:
        if self.output_shape_spec is None:
            return super().compute_output_shape(input_shape)
        if callable(self.output_shape_spec):
            return self.output_shape_spec(input_shape)
        batch = input_shape[0] if is_shape(input_shape) else input_shape[0][0]
        return (batch, *self.output_shape_spec)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        if self.output_shape_spec is None:  # the function may change the dtype too
            return self._probe(args, kwargs)
        return super().compute_output_spec(*args, **kwargs)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        return self.mask(inputs, previous_mask) if callable(self.mask) else self.mask


class Identity(Elementwise):
    """Return the input unchanged."""

    def call(self, x: Any) -> Any:
        return x


class Masking(Elementwise):
    """Mask the steps whose features all equal `mask_value`, and set them to 0; later layers skip masked steps."""

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Tensor, previous_mask: Any = None) -> Tensor:
        return (inputs != self.mask_value).any(-1)

    def call(self, x: Tensor) -> Tensor:
        return x * self.compute_mask(x)[..., None].to(x.dtype)
