"""Report the progress of a Whisper model within a window, by hooks, while Python is busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.models.whisper import Whisper
from tallow.nn import Module

# A message costs 0.1 ms and a token of a small model 1 ms, so messages are limited to what a screen can show.
INTERVAL_S = 1 / 30


class Progress:
    """Hooks on a model that report its progress.

    Events: {"stage": "encode", "share", "frames", "bins", "pixels"} at the start of a window, the same without the
    spectrogram after each layer, and {"stage": "decode", "text"} after tokens.

    Args:
        frames_left: returns the number of frames from the window's start to the end of the sound; the rest is padding.

    Attributes:
        counts: `windows`, `encode_s`, `tokens` and `decode_s` of the current transcription.
    """

    def __init__(self, model: Whisper, frames_left: Callable[[], int]) -> None:
        self._tokenizer = model.tokenizer
        self._frames_left = frames_left
        self._emit: Callable[[dict[str, Any]], None] | None = None
        self._reported_at = self._stage_started = 0.0
        self._text: list[int] = []
        self.reset()
        encoder, decoder = model.encoder, model.decoder
        encoder.register_forward_pre_hook(self._before_encoder)
        for i, layer in enumerate(encoder.layers, start=1):
            layer.register_forward_hook(self._after_layer(i / len(encoder.layers)))
        encoder.register_forward_hook(self._after_encoder)
        decoder.register_forward_pre_hook(self._before_decoder)
        decoder.register_forward_hook(self._after_decoder)

    def reset(self) -> None:
        """Set the counts to zero, for a new transcription."""
        self.counts = {"windows": 0, "encode_s": 0.0, "tokens": 0, "decode_s": 0.0}

    @contextmanager
    def reporting_to(self, emit: Callable[[dict[str, Any]], None]) -> Iterator[None]:
        """Send events to `emit` within a `with` block."""
        self._emit = emit
        try:
            yield
        finally:
            self._emit = None

    def _report(self, event: dict[str, Any], *, always: bool = False) -> None:
        now = time.perf_counter()
        if self._emit and (always or now - self._reported_at >= INTERVAL_S):
            self._reported_at = now
            self._emit(event)

    def _before_encoder(self, _: Module, arguments: tuple[Any, ...]) -> None:
        self._stage_started = time.perf_counter()
        mel_MT = arguments[0].numpy()[0][:, : self._frames_left()]
        self._report({"stage": "encode", "share": 0.0} | pixels(mel_MT), always=True)

    def _after_layer(self, share: float) -> Callable[..., None]:
        return lambda *_: self._report({"stage": "encode", "share": share})

    def _after_encoder(self, *_: Any) -> None:
        self.counts["windows"] += 1
        self.counts["encode_s"] += time.perf_counter() - self._stage_started

    def _before_decoder(self, _: Module, arguments: tuple[Any, ...]) -> None:
        self._stage_started = time.perf_counter()
        tokens = arguments[0].numpy()[0].tolist()
        if len(tokens) > 1:  # the prompt of a new text
            self._text.clear()
        elif tokens[0] < self._tokenizer.eot:
            self._text.append(tokens[0])
            self._report({"stage": "decode", "text": self._tokenizer.decode(self._text)})

    def _after_decoder(self, *_: Any) -> None:
        self.counts["tokens"] += 1
        self.counts["decode_s"] += time.perf_counter() - self._stage_started


def pixels(mel_MT: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Scale a spectrogram to 0 to 255, flattened row by row with the highest band first."""
    low, high = float(mel_MT.min()), float(mel_MT.max())
    scaled = (mel_MT[::-1] - low) * (255 / (high - low or 1))
    bins, frames = mel_MT.shape
    return {"bins": bins, "frames": frames, "pixels": scaled.astype(np.uint8).ravel()}
