"""Dense and embedding layers."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.functions.embedding import embedding
from tallow.keras import constraints
from tallow.keras.dtype_names import as_dtype
from tallow.keras.layers.affine import Affine, affine, as_float
from tallow.keras.layers.checks import known_size, positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.shapes import Shape
from tallow.keras.symbolic import KerasTensor
from tallow.tape.modes import mode


class Dense(Affine):
    """activation(x · kernel + bias) along the last axis.

    Args:    as keras.layers.Dense

    Shapes:  x (batch, ..., in) -> (batch, ..., units);  kernel (in, units);  bias (units)
    """

    supports_masking = True

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint, **kwargs,
        )  # fmt: skip
        self.units = positive(self.name, "units", units)
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Shape) -> None:
        width = known_size(self.name, input_shape, -1)
        self.add_kernel_and_bias((width, self.units), (self.units,))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: width})

    def call(self, x: Tensor) -> Tensor:
        return self.activation(affine(as_float(x, self.kernel), self.kernel, self.bias))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)


class Embedding(Layer):
    """Look up rows of a matrix by integer indices.

    Args:    as keras.layers.Embedding
        mask_zero: treat index 0 as padding; later layers that support masks skip it.
        weights: the initial matrix, instead of a random one.

    Shapes:  x (batch, ...) of integers -> (batch, ..., output_dim);  embeddings (input_dim, output_dim)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        weights: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("input_length", None)  # Keras accepts it for compatibility and ignores it
        super().__init__(**kwargs)
        self.embeddings_constraint = constraints.get(embeddings_constraint)
        self.input_dim = positive(self.name, "input_dim", input_dim)
        self.output_dim = positive(self.name, "output_dim", output_dim)
        self.embeddings_initializer = embeddings_initializer
        self.embeddings_regularizer = embeddings_regularizer
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero
        if weights is not None:
            self.build()
            self.set_weights(weights if isinstance(weights, list) else [weights])

    def build(self, input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            (self.input_dim, self.output_dim),
            self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
            name="embeddings",
        )

    def call(self, x: Tensor) -> Tensor:
        indices = x.to(tl.int64) if x.dtype is not tl.int64 else x
        if (
            mode.tracer is None
            and indices.numel()
            and not 0 <= int(indices.min()) <= int(indices.max()) < self.input_dim
        ):
            raise ArgumentError(
                f"{self.name}: indices from {int(indices.min())} to {int(indices.max())}; "
                f"input_dim={self.input_dim} has rows 0 to {self.input_dim - 1}",
                hint="make input_dim one more than the largest index",
            )
        return embedding(indices, self.embeddings)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"weights": None}  # the weights file stores the values

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        return inputs != 0 if self.mask_zero else None

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, self.output_dim)


class ReversibleEmbedding(Embedding):
    """Embedding that also maps vectors back to scores over the indices, with `layer(x, reverse=True)`.

    Args:    as keras.layers.ReversibleEmbedding
        tie_weights: use the same matrix in both directions; otherwise reverse_embeddings is a separate one.
        reverse_dtype: the dtype in which the scores are computed.
        logit_soft_cap: bound of the scores, applied with tanh.

    Shapes:  x (batch, ...) of integers -> (batch, ..., output_dim); with reverse=True x (batch, ..., output_dim)
             -> (batch, ..., input_dim); reverse_embeddings (output_dim, input_dim)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        reverse_dtype: Any = None,
        logit_soft_cap: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            input_dim, output_dim, embeddings_initializer, embeddings_regularizer, embeddings_constraint, mask_zero,
            **kwargs,
        )  # fmt: skip
        self.tie_weights = tie_weights
        self.reverse_dtype = None if reverse_dtype is None else as_dtype(reverse_dtype)
        self.logit_soft_cap = logit_soft_cap

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        if not self.tie_weights:
            self.reverse_embeddings = self.add_weight(
                (self.output_dim, self.input_dim), self.embeddings_initializer, name="reverse_embeddings"
            )

    def call(self, x: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            return super().call(x)
        kernel = self.embeddings.mT if self.tie_weights else self.reverse_embeddings
        if self.reverse_dtype is not None:
            x, kernel = x.to(self.reverse_dtype), kernel.to(self.reverse_dtype)
        logits = x @ kernel
        cap = self.logit_soft_cap
        return logits if cap is None else (logits / cap).tanh() * cap

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        if inputs.is_floating_point():  # vectors of the reverse direction
            return None
        return super().compute_mask(inputs, previous_mask)

    def compute_output_spec(self, x: Any, reverse: bool = False) -> Any:
        shape = (*x.shape[:-1], self.input_dim) if reverse else (*x.shape, self.output_dim)
        return KerasTensor(shape, self.reverse_dtype or self._dtype if reverse else self._dtype)
