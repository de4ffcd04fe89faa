"""Logits of the next tokens of some texts: from a model's fused decoder, or from its `forward`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

import tallow
from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.tape.modes import no_grad
from tallow.transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

MOST_AT_ONCE = 1024  # positions of a cache that is allocated at once; a longer one grows with the text


class Steps(Protocol):
    """The interface of what computes logits for some texts."""

    def read(self, pending: Sequence[Sequence[int]]) -> Array:
        """Append tokens (B, T); return the logits (B, V) of what follows."""

    def select(self, rows: Sequence[int]) -> None:
        """Continue with these rows, in this order; a row may occur several times."""

    @property
    def cache(self) -> Any:
        """The cache, as `past_key_values`."""

    @property
    def outputs(self) -> Any:
        """The result of `forward` for the last tokens; None where it did not run."""


class CoreSteps:
    """The steps of a language model of `tallow.generation`: fused blocks decode where they can.

    Args:
        core: the model, or the decoder of an encoder-decoder model with its sources.
        padding: how many tokens on the left of each row are padding; None means none.
        most: the most tokens that will be read.
        cache: of the caller, which may hold the beginning of the texts; None means a new one.
        options: of the core's `new_cache`.
    """

    outputs = None

    def __init__(
        self,
        core: Any,
        batch: int,
        padding: Sequence[int] | None,
        most: int,
        cache: Cache | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self._core = core
        if cache is None:
            self._memory = core.new_cache(
                length=most, batch=batch, padding=padding, growing=most > MOST_AT_ONCE, **(options or {})
            )
        else:
            self._memory = cache.memory_for(core, batch, padding)
        self._cache = cache

    @property
    def cache(self) -> Any:
        """The cache, as `past_key_values`."""
        if self._cache is None:
            self._cache = DynamicCache()
            self._cache.memory = self._memory
        if hasattr(self._memory, "sources"):
            return EncoderDecoderCache(self._cache, SourceLayers(self._memory))
        return self._cache

    def read(self, pending: Sequence[Sequence[int]]) -> Array:
        """Append tokens (B, T); return the logits (B, V) of what follows."""
        if len(pending) == 1:
            return self._core.next_logits(pending[0], self._memory)[None]
        return self._core.last_logits(pending, self._memory)[:, 0]

    def select(self, rows: Sequence[int]) -> None:
        """Continue with these rows, in this order; a row may occur several times."""
        self._memory.select(rows)


class SourceLayers:
    """The keys and values of a source, as the cache of cross-attention; the memory of the decoder selects its rows."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def __len__(self) -> int:
        return len(self._memory.sources.layers)

    def __getitem__(self, layer: int) -> tuple[Tensor, Tensor]:
        cross = self._memory.sources.layers[layer]
        return cross.keys, cross.values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of positions of the source."""
        return int(self[layer_idx][0].shape[2])

    def reorder_cache(self, beam_idx: Any) -> None:
        """The memory of the decoder has done it."""

    def batch_repeat_interleave(self, repeats: int) -> None:
        """The memory of the decoder has done it."""

    def reset(self) -> None:
        """Leave the source as it is: it was read once."""


class ForwardSteps:
    """The steps of a model by its `forward`, for inputs and results that its fused decoder does not have.

    Args:
        inputs: arguments of the first call besides the ids; what has a row for each text is selected with the texts.
        uses_cache: keep keys and values; otherwise every call reads whole texts.
        options: arguments of every call.
    """

    def __init__(
        self, model: Any, inputs: dict[str, Any], cache: Any, uses_cache: bool, options: dict[str, Any]
    ) -> None:
        self._model = model
        self._inputs = inputs
        self.cache = cache
        self._uses_cache = uses_cache
        self._options = options
        self._texts: list[list[int]] = []
        self._has_begun = False
        self.outputs: Any = None
        self._encoder_decoder = bool(model.config.is_encoder_decoder)

    def read(self, pending: Sequence[Sequence[int]]) -> Array:
        """Append tokens (B, T); return the logits (B, V) of what follows."""
        inputs = dict(self._inputs)
        new = [list(text) for text in pending]
        if not self._uses_cache:
            self._texts = [[*old, *text] for old, text in zip(self._texts, new, strict=True)] if self._texts else new
            new = self._texts
        self._set_positions(inputs, len(new[0]))
        if new[0]:
            device = self._model.device
            ids = wrap(devices.move(np.array(new, np.int64), device))
            inputs["decoder_input_ids" if self._encoder_decoder else "input_ids"] = ids
        with no_grad():
            self.outputs = self._model(
                **inputs, past_key_values=self.cache, use_cache=self._uses_cache, return_dict=True, **self._options
            )
        self.cache = self.outputs.get("past_key_values", self.cache)
        self._advance(len(new))
        return dtypes.cast(self.outputs.logits[:, -1].detach().array, dtypes.float32)

    def _set_positions(self, inputs: dict[str, Any], count: int) -> None:
        """Set the positions of the new tokens of a decoder, which do not count padding."""
        mask = inputs.get("attention_mask")
        if mask is None or self._encoder_decoder or "position_ids" in inputs:
            return
        embeds = inputs.get("inputs_embeds")
        new = count + (0 if embeds is None else embeds.shape[1])
        inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -new:]

    def _advance(self, rows: int) -> None:
        """Prepare the arguments of the next call."""
        kept = ("encoder_outputs", "attention_mask", "decoder_attention_mask")
        if self._uses_cache:
            self._inputs = {name: value for name, value in self._inputs.items() if name in kept}
        mask_name = "decoder_attention_mask" if self._encoder_decoder else "attention_mask"
        mask = self._inputs.get(mask_name)
        if mask is not None:
            self._inputs[mask_name] = tallow.cat(
                [mask, tallow.ones((rows, 1), dtype=mask.dtype, device=mask.device)], 1
            )

    def select(self, rows: Sequence[int]) -> None:
        """Continue with these rows, in this order; a row may occur several times."""
        rows = list(rows)
        if self.cache is not None:
            self.cache.batch_select_indices(rows)
        self._texts = [self._texts[row] for row in rows] if self._texts else []
        self._inputs = {name: _selected(value, rows) for name, value in self._inputs.items()}


def _selected(value: Any, rows: list[int]) -> Any:
    """Return the rows of a Tensor, or of the Tensors of a result."""
    if isinstance(value, Tensor):
        return value[rows]
    if hasattr(value, "to_tuple"):
        return type(value)(**{name: _selected(each, rows) for name, each in value.items()})
    return value
