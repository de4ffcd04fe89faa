"""Multi-head attention with its input and output projections.

Letters: N batch, T query positions, S key positions, D width, H query heads, G key/value heads, K = key_dim,
V = value_dim.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras import initializers
from tallow.keras.layers.activation import masked_softmax
from tallow.keras.layers.affine import Affine, affine, as_float
from tallow.keras.layers.checks import known_size, positive
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.regularization import check_rate, dropout_mask
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.ops.dims import normalize_dims
from tallow.random import Generator


class HeadProjection(Affine):
    """Multiply the last dims of x by a kernel of several dims; attention uses it to project to heads and back.

    Args:
        contracted: the number of last dims of x that are contracted with the first dims of the kernel.
        output_shape: the dims that replace them.
    """

    supports_masking = True

    def __init__(self, contracted: int, output_shape: tuple[int, ...], *settings: Any, **kwargs: Any) -> None:
        super().__init__(None, *settings, **kwargs)
        self.contracted = contracted
        self.output_dims = output_shape

    def build(self, input_shape: Shape) -> None:
        width = tuple(known_size(self.name, input_shape, axis) for axis in range(-self.contracted, 0))
        shape = (*width, *self.output_dims)
        axes = range(len(shape))
        self.kernel_initializer = initializers.with_axes(
            self.kernel_initializer, axes[: self.contracted], axes[self.contracted :]
        )
        self.add_kernel_and_bias(shape, self.output_dims)

    def call(self, x: Tensor) -> Tensor:
        outer = x.shape[: x.ndim - self.contracted]
        inner = math.prod(self.kernel.shape[: self.contracted])
        x = as_float(x, self.kernel).reshape(*outer, inner)
        bias = None if self.bias is None else self.bias.reshape(-1)
        y = affine(x, self.kernel.reshape(inner, -1), bias)
        return y.reshape(*outer, *self.output_dims)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[: len(input_shape) - self.contracted], *self.output_dims)


class HeadedAttention(Layer):
    """softmax(q kᵀ / √K + mask) v in several heads, each with its own projections, then one output projection.

    Args:
        heads: H, G, K and V.
        dropout: dropout probability of the scores.
        settings: use_bias, initializers, regularizers and constraints of the projections.
        attention_axes: the axes that hold positions; by default all axes between the batch and the features.
        sliding_window: a query attends to keys less than this distance away.
        use_gate: multiply the heads' output by a sigmoid of the projected query.
        seed: seed of the dropout; None uses tallow's default generator.

    Shapes:  query (N, T, D), value (N, S, Dv), key (N, S, Dk), by default the value -> (N, T, D), or `output_shape`
             instead of D; with return_attention_scores also (N, H, T, S). attention_mask (N, T, S), True where a query
             attends to a key; query_mask (N, T), value_mask and key_mask (N, S): the sequence masks that tensors carry.
             T and S stand for several dims if attention_axes has several axes.
    """

    supports_masking = True

    def __init__(
        self,
        heads: tuple[int, int, int, int],
        dropout: float,
        settings: tuple[Any, ...],
        output_shape: tuple[int, ...] | None,
        attention_axes: Sequence[int] | None,
        sliding_window: int | None,
        use_gate: bool,
        seed: int | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        names = ("number of query heads", "number of key and value heads", "width of keys", "width of values")
        self.heads = tuple(positive(self.name, name, n) for name, n in zip(names, heads, strict=True))
        self.dropout = check_rate(self.name, dropout)
        self.settings = settings
        self.projected = output_shape
        self.axes: Any = None if attention_axes is None else tuple(attention_axes)  # a tuple once the layer is built
        self.sliding_window = None
        if sliding_window is not None:
            self.sliding_window = positive(self.name, "sliding_window", sliding_window)
        self.use_gate = use_gate
        self._generator = None if seed is None else Generator().manual_seed(seed)

    def build(self, query_shape: Shape, value_shape: Any = None, key_shape: Shape | None = None) -> None:
        rank, key_shape = len(query_shape), key_shape or value_shape
        if rank < 3 or {len(value_shape), len(key_shape)} != {rank}:
            raise ArgumentError(
                f"{self.name}: query {query_shape}, value {value_shape} and key {key_shape} must have the same number "
                "of dims, at least three"
            )
        axes = range(1, rank - 1) if self.axes is None else sorted(normalize_dims(self.axes, rank, self.name))
        if not axes or not 1 <= axes[0] <= axes[-1] < rank - 1:
            raise ArgumentError(f"{self.name}: attention_axes={self.axes}", hint=f"use axes from 1 to {rank - 2}")
        self.axes = tuple(axes)
        H, G, K, V = self.heads
        output = (known_size(self.name, query_shape, -1),) if self.projected is None else tuple(self.projected)
        self.query_dense = self._projection("query", query_shape, 1, (H, K))
        self.key_dense = self._projection("key", key_shape, 1, (G, K))
        if self.use_gate:
            self.gate_dense = self._projection("gate", query_shape, 1, (H, V))
        self.value_dense = self._projection("value", value_shape, 1, (G, V))
        self.output_dense = self._projection("attention_output", (*query_shape[:-1], H, V), 2, output)

    def _projection(self, name: str, input_shape: Shape, contracted: int, output: tuple[int, ...]) -> HeadProjection:
        use_bias, kernel, bias, *others = self.settings
        kernel, bias = (initializers.get(first) for first in (kernel, bias))
        dense = HeadProjection(contracted, output, use_bias, kernel, bias, *others, name=name, dtype=self.dtype_policy)
        dense.build(input_shape)
        return dense

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
        masks = self._masks(query_mask, value_mask, key_mask, attention_mask)
        is_sequence = self.axes == (1,) and query.ndim == 3
        if not is_sequence and (use_causal_mask or self.sliding_window or len(masks) > (attention_mask is not None)):
            raise ArgumentError(
                f"{self.name}: sequence masks, use_causal_mask and sliding_window need inputs of three dims, "
                f"got {query.ndim}",
                hint="pass attention_mask with the query dims and the key dims",
            )
        dropout = self.dropout if training else 0.0
        needs_scores = return_attention_scores or (dropout > 0 and self._generator is not None)
        is_causal = use_causal_mask and not masks and self.sliding_window is None and not needs_scores
        if not is_causal and (use_causal_mask or self.sliding_window is not None):
            masks.append(self._window_mask(query, value, use_causal_mask))
        allowed = functools.reduce(lambda x, y: x & y, masks) if masks else None
        projected = ((self.query_dense, query), (self.key_dense, key), (self.value_dense, value))
        q, k, v = (self._split_heads(project(x)) for project, x in projected)
        scores = None
        if needs_scores:
            scores, y = self._attend_with_scores(q, k, v, allowed, dropout)
        else:
            enable_gqa = self.heads[0] != self.heads[1]
            y = F.scaled_dot_product_attention(q, k, v, allowed, dropout, is_causal, enable_gqa=enable_gqa)
        y = self._join_heads(y, query)
        if self.use_gate:
            y = y * tl.sigmoid(self.gate_dense(query))
        y = self.output_dense(y)
        if not return_attention_scores or scores is None:
            return y
        positions = (*(query.shape[a] for a in self.axes), *(key.shape[a] for a in self.axes))
        return y, scores.reshape(*scores.shape[:-2], *positions)

    def _attend_with_scores(
        self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, dropout: float
    ) -> tuple[Tensor, Tensor]:
        """Return the attention scores and the values weighted by them."""
        H, G, K, _ = self.heads
        if H != G:
            k, v = k.repeat_interleave(H // G, -3), v.repeat_interleave(H // G, -3)
        scores = masked_softmax((q * K**-0.5) @ k.mT, -1, allowed)
        if not dropout:
            return scores, scores @ v
        return scores, (scores * dropout_mask(scores, dropout, scores.shape, self._generator)) @ v

    def _others(self, rank: int) -> list[int]:
        """Return the axes, without the batch, that hold no positions."""
        return [axis for axis in range(1, rank) if axis not in self.axes]

    def _split_heads(self, x: Tensor) -> Tensor:
        """(N, *positions and others, H, K) -> (N, *others, H, T, K)"""
        others = self._others(x.ndim - 2)
        x = x.permute(0, *others, x.ndim - 2, *self.axes, x.ndim - 1)
        return x.reshape(*x.shape[: len(others) + 2], -1, x.shape[-1])

    def _join_heads(self, y: Tensor, query: Tensor) -> Tensor:
        """(N, *others, H, T, V) -> (N, *positions and others, H, V)"""
        axes = self.axes
        others = self._others(query.ndim - 1)
        y = y.reshape(*y.shape[:-2], *(query.shape[axis] for axis in axes), y.shape[-1])
        order = (0, *others, query.ndim, *axes, query.ndim + 1)  # for each dim, its position in the result
        return y.permute(*(order.index(dim) for dim in (*range(query.ndim - 1), query.ndim, query.ndim + 1)))

    def _masks(
        self,
        query_mask: Tensor | None,
        value_mask: Tensor | None,
        key_mask: Tensor | None,
        attention_mask: Tensor | None,
    ) -> list[Tensor]:
        """Return boolean masks that broadcast to (N, ..., H, T, S); a query attends to a key where all are True."""
        masks = [] if query_mask is None else [query_mask[:, None, :, None]]
        masks += [mask[:, None, None, :] for mask in (value_mask, key_mask) if mask is not None]
        if attention_mask is not None:
            count = len(self.axes)
            front, positions = attention_mask.shape[: -2 * count], attention_mask.shape[-2 * count :]
            flat = attention_mask.reshape(*front, math.prod(positions[:count]), math.prod(positions[count:]))
            masks.append(flat[:, None] if len(front) == 1 else flat)
        return [mask.to(tl.bool) for mask in masks]

    def _window_mask(self, query: Tensor, value: Tensor, is_causal: bool) -> Tensor:
        """Return the mask of keys that are not after the query (if causal) and within the window."""
        T, S = query.shape[1], value.shape[1]
        distance = tl.arange(T, device=query.device)[:, None] - tl.arange(S, device=query.device)
        allowed = distance >= 0 if is_causal else tl.ones(T, S, dtype=tl.bool, device=query.device)
        return allowed if self.sliding_window is None else allowed & (distance.abs() < self.sliding_window)

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


class MultiHeadAttention(HeadedAttention):
    """Multi-head attention: softmax(q kᵀ / √K + mask) v in each head.

    Args:    as keras.layers.MultiHeadAttention; flash_attention is ignored, because tallow.kernels chooses the kernel

    Shapes:  see HeadedAttention
    Source:  Vaswani et al. 2017, arXiv:1706.03762
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Any = None,
        sliding_window: int | None = None,
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
        settings = (
            use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint,
        )  # fmt: skip
        super().__init__(
            (num_heads, num_heads, key_dim, key_dim if value_dim is None else value_dim), dropout, settings,
            (output_shape,) if isinstance(output_shape, int) else output_shape,
            (attention_axes,) if isinstance(attention_axes, int) else attention_axes,
            sliding_window, use_gate, seed, **kwargs,
        )  # fmt: skip
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, self.heads[3]


class GroupQueryAttention(HeadedAttention):
    """Grouped-query attention: several query heads share one key/value head.

    Args:    as keras.layers.GroupQueryAttention; flash_attention is ignored, because tallow.kernels chooses the kernel

    Shapes:  see HeadedAttention
    Source:  Ainslie et al. 2023, arXiv:2305.13245
    """

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
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
        settings = (
            use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint,
        )  # fmt: skip
        super().__init__(
            (num_query_heads, num_key_value_heads, head_dim, head_dim), dropout, settings, None, (1,), sliding_window,
            use_gate, seed, **kwargs,
        )  # fmt: skip
        if num_query_heads % num_key_value_heads:
            raise ArgumentError(
                f"{self.name}: num_query_heads={num_query_heads} must be a multiple of "
                f"num_key_value_heads={num_key_value_heads}"
            )
        self.head_dim, self.num_query_heads, self.num_key_value_heads = head_dim, num_query_heads, num_key_value_heads
