"""Classifier-free guidance: scores move away from those without the prompt, or with a negative one.

Source:  Sanchez et al. 2023, arXiv:2306.17806
"""

from __future__ import annotations

from typing import Any

import tallow
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.nn import functional as F
from tallow.tape.modes import no_grad
from tallow.transformers.generation.logits_process import LogitsProcessor


class ClassifierFreeGuidanceLogitsProcessor(LogitsProcessor):
    """Guides scores whose second half, (B, V) of (2 B, V), is without the prompt."""

    def __init__(self, guidance_scale: float) -> None:
        if not guidance_scale > 1:
            raise ArgumentError(f"guidance_scale={guidance_scale}", hint="pass more than 1")
        self.guidance_scale = guidance_scale

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        count = input_ids.shape[0]
        if scores.shape[0] != 2 * count:
            raise ShapeError(f"scores of {scores.shape[0]} rows for {count} texts; expected {2 * count}")
        with_BV, without_BV = scores[:count], scores[count:]
        return without_BV + (with_BV - without_BV) * self.guidance_scale


class UnbatchedClassifierFreeGuidanceLogitsProcessor(LogitsProcessor):
    """Guides scores by those of the same model without the prompt, or with another one.

    Args:
        unconditional_ids: the other prompt, (B, T); None means the last token of the prompt.
        unconditional_attention_mask: 1 for its text, 0 for padding.
        use_cache: keep the keys and values of the other text.
    """

    def __init__(
        self,
        guidance_scale: float,
        model: Any,
        unconditional_ids: Tensor | None = None,
        unconditional_attention_mask: Tensor | None = None,
        use_cache: bool | None = True,
    ) -> None:
        self.guidance_scale = guidance_scale
        self.model = model
        self.use_cache = use_cache
        self._ids = unconditional_ids
        self._mask = unconditional_attention_mask
        self._cache: Any = None
        self._has_begun = False

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores_BV = F.log_softmax(scores, -1)
        if self.guidance_scale == 1:
            return scores_BV
        with no_grad():
            without_BV = F.log_softmax(self._logits(input_ids)[:, -1].float(), -1)
        return (scores_BV - without_BV) * self.guidance_scale + without_BV

    def _logits(self, input_ids: Tensor) -> Tensor:
        last = input_ids[:, -1:]
        if not self._has_begun:
            self._has_begun = True
            ids = last if self._ids is None else self._ids
            self._mask = tallow.ones_like(ids) if self._mask is None else self._mask
        else:
            ids = last if self.use_cache or self._ids is None else tallow.cat([self._ids, last], 1)
            assert self._mask is not None
            self._mask = tallow.cat([self._mask, tallow.ones_like(last)], 1)
        self._ids = ids
        out = self.model(ids, attention_mask=self._mask, use_cache=self.use_cache, past_key_values=self._cache)
        self._cache = out.get("past_key_values")
        return out.logits
