"""Attention.

Letters: N batch, T query positions, S key positions, D width, H heads, K = key_dim, V = value_dim.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import tallow as tl
from tallow.errors import ArgumentError
from tallow.keras import initializers
from tallow.keras.layers.activation import masked_softmax
from tallow.keras.layers.affine import Affine, affine, as_float
from tallow.keras.layers.checks import known, positive
from tallow.keras.layers.input_spec import InputSpec
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.regularization import checked_rate
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.tensor import Tensor


class HeadProjection(Affine):
    """The last dims of x times a kernel of several dims, as attention projects to its heads and back.

    Args:
        contracted: how many of the last dims of x the kernel's first ones meet.
        output_shape: the dims that come in their place.
    """

    supports_masking = True

    def __init__(self, contracted: int, output_shape: tuple[int, ...], *settings: Any, **kwargs: Any) -> None:
        super().__init__(None, *settings, **kwargs)
        self.contracted = contracted
        self.output_dims = output_shape

    def build(self, input_shape: Shape) -> None:
        width = tuple(known(self.name, input_shape, axis) for axis in range(-self.contracted, 0))
        self.add_kernel_and_bias((*width, *self.output_dims), self.output_dims)

    def call(self, x: Tensor) -> Tensor:
        kept = x.shape[: x.ndim - self.contracted]
        inner = math.prod(self.kernel.shape[: self.contracted])
        x = as_float(x, self.kernel).reshape(*kept, inner)
        bias = None if self.bias is None else self.bias.reshape(-1)
        y = affine(x, self.kernel.reshape(inner, -1), bias)
        return y.reshape(*kept, *self.output_dims)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[: len(input_shape) - self.contracted], *self.output_dims)


class MultiHeadAttention(Layer):
    """softmax(q kᵀ / √K + mask) v in several heads, each with projections of its own, and one of all to the output.

    Args:    as keras.layers.MultiHeadAttention, except attention_axes other than the sequence's, sliding_window and
        use_gate, which are refused; flash_attention has no meaning here
    Shapes:  query (N, T, D), value (N, S, Dv), key (N, S, Dk), by default the value -> (N, T, D), or `output_shape`
             instead of D; with return_attention_scores also (N, H, T, S). attention_mask (N, T, S), True where a query
             sees a key; query_mask (N, T), value_mask and key_mask (N, S), as masks that travel with tensors
    Source:  Vaswani et al. 2017, arXiv:1706.03762
    """

    supports_masking = True

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Any = None,
        sliding_window: Any = None,
        flash_attention: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if attention_axes not in (None, 1, (1,), [1]) or sliding_window is not None or use_gate:
            raise ArgumentError(f"{self.name}: attention_axes, sliding_window and use_gate are not supported")
        self.num_heads = positive(self.name, "num_heads", num_heads)
        self.key_dim = positive(self.name, "key_dim", key_dim)
        self.value_dim = key_dim if value_dim is None else positive(self.name, "value_dim", value_dim)
        self.dropout = checked_rate(self.name, dropout)
        self.projected = (output_shape,) if isinstance(output_shape, int) else output_shape
        self.settings = (
            use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint,
        )  # fmt: skip

    def build(self, query_shape: Shape, value_shape: Any = None, key_shape: Shape | None = None) -> None:
        for shape in (query_shape, value_shape, key_shape or value_shape):
            InputSpec(ndim=3).check(self.name, shape)
        H = self.num_heads
        output = (known(self.name, query_shape, -1),) if self.projected is None else tuple(self.projected)
        self.query_dense = self._projection("query", query_shape, 1, (H, self.key_dim))
        self.key_dense = self._projection("key", key_shape or value_shape, 1, (H, self.key_dim))
        self.value_dense = self._projection("value", value_shape, 1, (H, self.value_dim))
        self.output_dense = self._projection("attention_output", (None, None, H, self.value_dim), 2, output)

    def _projection(self, name: str, input_shape: Shape, contracted: int, output: tuple[int, ...]) -> HeadProjection:
        use_bias, kernel, bias, *others = self.settings
        kernel, bias = (initializers.get(first) for first in (kernel, bias))
        made = HeadProjection(contracted, output, use_bias, kernel, bias, *others, name=name, dtype=self.dtype_policy)
        made.build(input_shape)
        return made

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Tensor | None = None,
        value_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        return_attention_scores: bool = False,
        training: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        key = value if key is None else key
        masks = _masks(query_mask, value_mask, key_mask, attention_mask)
        is_causal = use_causal_mask and not masks and not return_attention_scores
        if use_causal_mask and not is_causal:
            seen = tl.ones(query.shape[1], value.shape[1], dtype=tl.bool, device=query.device).tril()
            masks.append(seen[None, None])
        allowed = functools.reduce(lambda one, other: one & other, masks) if masks else None
        heads = ((self.query_dense, query), (self.key_dense, key), (self.value_dense, value))
        q, k, v = (project(x).transpose(1, 2) for project, x in heads)
        dropout = self.dropout if training else 0.0
        if not return_attention_scores:
            y = F.scaled_dot_product_attention(q, k, v, allowed, dropout, is_causal)
            return self.output_dense(y.transpose(1, 2))
        scores = masked_softmax((q * self.key_dim**-0.5) @ k.mT, -1, allowed)
        y = F.dropout(scores, dropout) @ v
        return self.output_dense(y.transpose(1, 2)), scores

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        return previous_mask

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("return_attention_scores"):
            return self._probe(args, kwargs)
        return super().compute_output_spec(*args, **kwargs)

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape | None = None, key_shape: Shape | None = None
    ) -> Shape:
        last = (query_shape[-1],) if self.projected is None else tuple(self.projected)
        return (*query_shape[:-1], *last)


def _masks(
    query_mask: Tensor | None, value_mask: Tensor | None, key_mask: Tensor | None, attention_mask: Tensor | None
) -> list[Tensor]:
    """Which keys each query sees: booleans that broadcast to (N, H, T, S), all of which must hold."""
    masks = [] if query_mask is None else [query_mask[:, None, :, None]]
    masks += [mask[:, None, None, :] for mask in (value_mask, key_mask) if mask is not None]
    if attention_mask is not None:
        masks.append(attention_mask[:, None] if attention_mask.ndim == 3 else attention_mask)
    return [mask.to(tl.bool) for mask in masks]
