"""Attention without projections over a list of tensors: [query, value] or [query, value, key].

Letters: N batch, T query positions, S key positions, D width.
"""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.keras.layers.layer import Layer
from tallow.keras.layers.regularization import check_rate, dropout_mask
from tallow.keras.shapes import Shape
from tallow.nn import functional as F
from tallow.random import Generator

HIDDEN = 1e9  # subtracted from the scores of masked keys
HIDDEN_HALF = 65504.0  # largest float16, which cannot represent HIDDEN


class ScoredAttention(Layer):
    """Base class: softmax(scores of query and key) · value.

    Shapes:  [query (N, T, D), value (N, S, E), key (N, S, D), by default the value] -> (N, T, E); with
             return_attention_scores also (N, T, S). The masks [(N, T), (N, S)] are False for queries whose output is
             zero, and for values to ignore.
    """

    supports_masking = True
    scale: Any

    def __init__(self, dropout: float, seed: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dropout = check_rate(self.name, dropout)
        self._generator = None if seed is None else Generator().manual_seed(seed)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the attention scores before masking and softmax.

        Shapes:  query (N, T, D), key (N, S, D) -> (N, T, S)
        """
        raise NotImplementedError

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        query, value, key = self._unpack_inputs(inputs)
        query_mask, value_mask = (None, None) if mask is None else mask[:2]
        scores = self.scores(query, key)
        allowed = None if value_mask is None else value_mask.to(tl.bool)[:, None]
        if use_causal_mask:
            causal = tl.ones(*scores.shape[-2:], dtype=tl.bool, device=scores.device).tril()
            allowed = causal if allowed is None else allowed & causal
        if allowed is not None:
            hidden = HIDDEN_HALF if scores.dtype is tl.float16 else HIDDEN
            scores = scores - hidden * allowed.logical_not().to(scores.dtype)
        weights = F.softmax(scores, dim=-1)
        if training and self.dropout:
            weights = weights * dropout_mask(weights, self.dropout, weights.shape, self._generator)
        y = weights @ value
        if query_mask is not None:
            y = y.masked_fill(query_mask.to(tl.bool).logical_not()[..., None], 0.0)
        return (y, weights) if return_attention_scores else y

    def _unpack_inputs(self, inputs: Any) -> Any:
        if not isinstance(inputs, list | tuple) or len(inputs) not in (2, 3):
            raise ArgumentError(f"{self.name}: expected a list: [query, value] or [query, value, key]")
        query, value, *key = inputs
        return query, value, key[0] if key else value

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        return None if previous_mask is None else previous_mask[0]

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("return_attention_scores"):
            return self._probe(args, kwargs)
        return super().compute_output_spec(*args, **kwargs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        query, value, _ = self._unpack_inputs(input_shape)
        return (*query[:-1], value[-1])


class Attention(ScoredAttention):
    """Dot-product attention, or with score_mode="concat" attention by Σ tanh(query + key).

    Args:    as keras.layers.Attention; use_scale: learn a factor of the scores

    Shapes:  see ScoredAttention
    Source:  Luong et al. 2015, arXiv:1508.04025
    """

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(dropout, seed, **kwargs)
        if score_mode not in ("dot", "concat"):
            raise ArgumentError(f"{self.name}: score_mode={score_mode!r}", hint="use 'dot' or 'concat'")
        self.use_scale = use_scale
        self.score_mode = score_mode

    def build(self, input_shape: Any) -> None:
        self._unpack_inputs(input_shape)
        self.scale = self.add_weight((), "ones", name="scale") if self.use_scale else None
        self.concat_score_weight = None
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight")

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        scale = 1.0 if self.scale is None else self.scale
        if self.concat_score_weight is None:
            return query @ key.mT * scale
        sums = query[..., :, None, :] + key[..., None, :, :]
        return self.concat_score_weight * (scale * sums).tanh().sum(-1)


class AdditiveAttention(ScoredAttention):
    """Additive attention by Σ scale · tanh(query + key), with one learned scale per feature.

    Args:    as keras.layers.AdditiveAttention

    Shapes:  see ScoredAttention
    Source:  Bahdanau et al. 2014, arXiv:1409.0473
    """

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(dropout, seed, **kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        query, *_ = self._unpack_inputs(input_shape)
        self.scale = self.add_weight((query[-1],), "glorot_uniform", name="scale") if self.use_scale else None

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        sums = (query[..., :, None, :] + key[..., None, :, :]).tanh()
        return (sums if self.scale is None else self.scale * sums).sum(-1)
