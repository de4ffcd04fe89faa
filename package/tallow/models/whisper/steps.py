"""Whisper's decoder, one step at a time.

Letters: A sounds, B rows, T positions, D width, V vocabulary. Rows of one sound, its beams or samples, are adjacent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.models.causal_lm import host_logits
from tallow.models.whisper.model import Heard, Whisper
from tallow.models.whisper.search import Floats, Rows
from tallow.nn.cache import KVCache


class Steps:
    """The decoder and its caches for the texts of some sounds.

    Args:  audio_ASD: encoded sounds
    """

    def __init__(self, model: Whisper, audio_ASD: Tensor) -> None:
        self._model = model
        self._heard: Heard = model.decoder.listen(audio_ASD)
        self._cache: KVCache = model.new_cache(audio_ASD.shape[0])
        self._fused = model.fused_decoder(self._heard)

    def start(self, rows: Rows, positions: Sequence[int]) -> Floats:
        """Read the beginning of the texts; return the logits that follow these positions, (A, len(positions), V)."""
        hidden_ATD = self._read(rows)
        return host_logits(self._model.logits(hidden_ATD[:, list(positions)]).array)

    def fan_out(self, group: int) -> None:
        """Copy the row of each sound to `group` rows."""
        self._cache.select([row for row in range(self._cache.batch) for _ in range(group)])

    def next_logits(self, rows: Rows) -> Floats:
        """Read the last token of each row; return the logits (B, V) of the next tokens."""
        logits_BV = self._fused.logits([row[-1] for row in rows], self._cache)
        if logits_BV is not None:
            return host_logits(logits_BV)
        return host_logits(self._model.logits(self._read([row[-1:] for row in rows])[:, -1]).array)

    def select(self, sources: Sequence[int]) -> None:
        """Continue with these rows, in this order; a row may occur several times."""
        self._cache.select(sources)

    def keep(self, sounds: Sequence[int], group: int) -> None:
        """Continue with the rows of these sounds only, of which each has `group`."""
        self._heard = self._heard.select(sounds)
        self._fused = self._model.fused_decoder(self._heard)
        self._cache.select([sound * group + row for sound in sounds for row in range(group)])

    def _read(self, rows: Rows) -> Tensor:
        device = self._model.decoder.embed_positions.weight.device
        tokens = wrap(devices.move(np.array(rows, np.int64), device))
        return self._model.decoder(tokens, self._heard, self._cache)
