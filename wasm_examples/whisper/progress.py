"""How far a Whisper is with a window: told by hooks, while Python is busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.models.whisper import Whisper
from tallow.nn import Module

# A message costs 0.1 ms, a token of a small model 1: as often as a screen shows it.
INTERVAL_S = 1 / 30


class Progress:
    """Watches a model.

    What it tells: {"stage": "encode", "share", "frames", "bins", "pixels"} where a window begins, the same without
    pixels after each layer, and {"stage": "decode", "text"} after tokens.

    Args:
        frames_left: how many frames of the sound there are from the window's start on; what is behind them is padding.

    Attributes:
        counted: of the transcription that goes on: `windows` and `encode_s`, `tokens` and `decode_s`.
    """

    def __init__(self, model: Whisper, frames_left: Callable[[], int]) -> None:
        self._tokenizer = model.tokenizer
        self._frames_left = frames_left
        self._emit: Callable[[dict[str, Any]], None] | None = None
        self._told_at = self._lap = 0.0
        self._text: list[int] = []
        self._reset()
        encoder, decoder = model.encoder, model.decoder
        encoder.register_forward_pre_hook(self._before_encoder)
        for i, layer in enumerate(encoder.layers, start=1):
            layer.register_forward_hook(self._after_layer(i / len(encoder.layers)))
        encoder.register_forward_hook(self._after_encoder)
        decoder.register_forward_pre_hook(self._before_decoder)
        decoder.register_forward_hook(self._after_decoder)

    def _reset(self) -> None:
        self.counted = {"windows": 0, "encode_s": 0.0, "tokens": 0, "decode_s": 0.0}

    @contextmanager
    def to(self, emit: Callable[[dict[str, Any]], None], *, anew: bool = False) -> Iterator[None]:
        """Tell it to `emit`, for a while."""
        self._emit = emit
        if anew:
            self._reset()
        try:
            yield
        finally:
            self._emit = None

    def _tell(self, message: dict[str, Any], *, always: bool = False) -> None:
        now = time.perf_counter()
        if self._emit and (always or now - self._told_at >= INTERVAL_S):
            self._told_at = now
            self._emit(message)

    def _before_encoder(self, _: Module, arguments: tuple[Any, ...]) -> None:
        self._lap = time.perf_counter()
        mel_MT = arguments[0].numpy()[0][:, : self._frames_left()]
        self._tell({"stage": "encode", "share": 0.0} | pixels(mel_MT), always=True)

    def _after_layer(self, share: float) -> Callable[..., None]:
        return lambda *_: self._tell({"stage": "encode", "share": share})

    def _after_encoder(self, *_: Any) -> None:
        self.counted["windows"] += 1
        self.counted["encode_s"] += time.perf_counter() - self._lap

    def _before_decoder(self, _: Module, arguments: tuple[Any, ...]) -> None:
        self._lap = time.perf_counter()
        tokens = arguments[0].numpy()[0].tolist()
        if len(tokens) > 1:  # what a text starts with
            self._text.clear()
        elif tokens[0] < self._tokenizer.eot:
            self._text.append(tokens[0])
            self._tell({"stage": "decode", "text": self._tokenizer.decode(self._text)})

    def _after_decoder(self, *_: Any) -> None:
        self.counted["tokens"] += 1
        self.counted["decode_s"] += time.perf_counter() - self._lap


def pixels(mel_MT: npt.NDArray[np.float32]) -> dict[str, Any]:
    """A spectrogram from 0 to 255, the highest band first, row by row."""
    low, high = float(mel_MT.min()), float(mel_MT.max())
    scaled = (mel_MT[::-1] - low) * (255 / (high - low or 1))
    bins, frames = mel_MT.shape
    return {"bins": bins, "frames": frames, "pixels": scaled.astype(np.uint8).ravel()}
