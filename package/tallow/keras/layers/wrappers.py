"""Layers that wrap layers: Bidirectional, TimeDistributed, SpectralNormalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.keras import initializers
from tallow.keras.layers.checks import positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.recurrent import Recurrent
from tallow.keras.layers.rnn import RNN
from tallow.keras.serialization import serialize_keras_object
from tallow.keras.shapes import Shape
from tallow.nn import functional as F

MERGES = ("concat", "sum", "mul", "ave", None)


class Wrapper(Layer):
    """Base class of layers that wrap one layer and build it.

    Args:    layer: the wrapped layer, available as `layer`.
    """

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise ArgumentTypeError(f"{type(self).__name__}: {layer!r:.100} is not a layer")
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)


class Bidirectional(Layer):
    """Run a recurrent layer forwards and a second one backwards.

    Args:
        layer: the forward layer; a copy with separate weights runs backwards.
        merge_mode: "concat", "sum", "mul" or "ave" of both outputs; None returns both.
        backward_layer: another layer for the backward direction; it must have the opposite go_backwards.

    Shapes:  as in the layer, with 2 U features for "concat"; states of the forward layer come first
    """

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(layer, Recurrent | RNN):
            raise ArgumentTypeError(
                f"Bidirectional: {layer!r:.100} is not a recurrent layer", hint="wrap a recurrent layer such as LSTM"
            )
        super().__init__(**kwargs)
        if merge_mode not in MERGES:
            raise ArgumentError(f"{self.name}: merge_mode={merge_mode!r}", hint=f"use one of {MERGES}")
        self.merge_mode = merge_mode
        self.forward_layer = _copy(layer, f"forward_{layer.name}", layer.go_backwards)
        if backward_layer is None:
            backward_layer = _copy(layer, f"backward_{layer.name}", not layer.go_backwards)
        self.backward_layer = backward_layer
        if self.backward_layer.go_backwards == self.forward_layer.go_backwards:
            raise ArgumentError(
                f"{self.name}: both layers run in the same direction", hint="set go_backwards of one layer"
            )
        for name in ("return_sequences", "return_state", "stateful"):
            if getattr(self.backward_layer, name) != getattr(layer, name):
                raise ArgumentError(f"{self.name}: the layers differ in {name}")
        for direction in (self.forward_layer, self.backward_layer):
            direction.zero_output_for_mask = layer.return_sequences
        self.return_sequences = layer.return_sequences
        self.return_state = layer.return_state
        self.supports_masking = True
        self.initial_weights = weights

    def build(self, sequences_shape: Shape, initial_state_shape: Any = None) -> None:
        self.forward_layer.build(sequences_shape)
        self.backward_layer.build(sequences_shape)
        if self.initial_weights is not None:
            self.built = True
            self.set_weights(self.initial_weights)

    def call(
        self, sequences: Tensor, initial_state: Any = None, mask: Tensor | None = None, training: bool = False
    ) -> Any:
        half = self.forward_layer.state_count
        states = (None, None) if initial_state is None else (initial_state[:half], initial_state[half:])
        directions = zip((self.forward_layer, self.backward_layer), states, strict=True)
        forward, backward = (_parts(layer(sequences, initial_state=state, mask=mask)) for layer, state in directions)
        y, y_backward = forward[0], backward[0]
        if self.return_sequences:
            y_backward = y_backward.flip(1)
        result = self._merge_outputs(y, y_backward)
        if not self.return_state:
            return result
        results = result if isinstance(result, tuple) else (result,)
        return (*results, *forward[1:], *backward[1:])

    def _merge_outputs(self, y: Tensor, y_back: Tensor) -> Any:
        if self.merge_mode is None:
            return y, y_back
        if self.merge_mode == "concat":
            return tl.cat([y, y_back], -1)
        if self.merge_mode == "mul":
            return y * y_back
        return y + y_back if self.merge_mode == "sum" else (y + y_back) / 2

    def reset_states(self) -> None:
        """Start the next batch from zeros."""
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        mask = previous_mask if self.return_sequences else None
        outputs = (mask, mask) if self.merge_mode is None else (mask,)
        states = [None] * 2 * self.forward_layer.state_count if self.return_state else []
        masks = (*outputs, *states)
        return masks if len(masks) > 1 else mask

    def compute_output_shape(self, sequences_shape: Shape, initial_state_shape: Any = None) -> Any:
        shapes = self.forward_layer.compute_output_shape(sequences_shape)
        shape, *states = shapes if self.return_state else (shapes,)
        outputs: tuple[Shape, ...] = (shape,)
        if self.merge_mode == "concat":
            outputs = ((*shape[:-1], 2 * shape[-1]),)
        elif self.merge_mode is None:
            outputs = (shape, shape)
        all_shapes = (*outputs, *states, *states)
        return all_shapes if len(all_shapes) > 1 else outputs[0]

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        # The original layer: both layer names derive from its name.
        args, kwargs = self._init_arguments
        config["layer"] = serialize_keras_object(args[0] if args else kwargs["layer"])
        return config | {"weights": None}  # the weights file stores the values


class TimeDistributed(Wrapper):
    """Apply a layer to each step of a sequence, with the same weights.

    Shapes:  x (N, T, ...), mask (N, T) or (N, T, ...); the layer gets the part of the mask within a step
             -> (N, T, output dims of the layer)
    """

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 3:
            raise ArgumentError(f"{self.name}: expected at least 3 dims, got shape {input_shape}")
        super().build((input_shape[0], *input_shape[2:]))

    def call(self, x: Tensor, training: bool = False, mask: Tensor | None = None) -> Tensor:
        batch, steps = x.shape[:2]
        options = {}
        if mask is not None and tuple(mask.shape[:2]) != (batch, steps):
            raise ShapeError(f"{self.name}: a mask of shape {tuple(mask.shape)} for an input of {tuple(x.shape)}")
        if mask is not None and mask.ndim > 2 and "mask" in self.layer._call_parameters:
            options["mask"] = mask.reshape(batch * steps, *mask.shape[2:])
        y = self.layer(x.reshape(batch * steps, *x.shape[2:]), **options)
        return y.reshape(batch, steps, *y.shape[1:])

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        shape = self.layer.compute_output_shape((input_shape[0], *input_shape[2:]))
        return (shape[0], input_shape[1], *shape[1:])


class SpectralNormalization(Wrapper):
    """Divide the kernel of a layer by its largest singular value before each call in training.

    Args:
        layer: a layer with a kernel, or embeddings.
        power_iterations: the number of steps of the power method, whose vector is kept between calls.

    Shapes:  as in the layer; vector_u (1, last dim of the kernel)
    Source:  Miyato et al. 2018, arXiv:1802.05957
    """

    def __init__(self, layer: Any, power_iterations: int = 1, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        self.power_iterations = positive(self.name, "power_iterations", power_iterations)

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        kernel = getattr(self.layer, "kernel", None)
        self.kernel: Any = getattr(self.layer, "embeddings", None) if kernel is None else kernel
        if self.kernel is None:
            raise ArgumentTypeError(f"{self.name}: {self.layer.name} has neither a kernel nor embeddings")
        first = initializers.TruncatedNormal(stddev=0.02)
        self.vector_u = self.add_weight((1, self.kernel.shape[-1]), first, trainable=False, name="vector_u")

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        if training:
            self._normalize()
        return self.layer(x)

    def _normalize(self) -> None:
        with tl.no_grad():
            if not self.kernel.any():
                return
            matrix, u = self.kernel.reshape(-1, self.kernel.shape[-1]), self.vector_u
            for _ in range(self.power_iterations):
                v = F.normalize(u @ matrix.T, dim=-1)
                u = F.normalize(v @ matrix, dim=-1)
            largest = v @ matrix @ u.T
            self.vector_u.assign(u)
            self.kernel.assign(self.kernel / largest)

    def compute_output_shape(self, input_shape: Shape) -> Any:
        return self.layer.compute_output_shape(input_shape)


def _parts(result: Any) -> Sequence[Any]:
    return result if isinstance(result, tuple) else (result,)


def _copy(layer: Recurrent | RNN, name: str, go_backwards: bool) -> Any:
    return type(layer).from_config(layer.get_config() | {"name": name, "go_backwards": go_backwards})
