"""Sounds as feature extractors take them, and what their calls have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, warn
from tallow.transformers.padding import PaddingStrategy
from tallow.transformers.preprocessing import Preprocessor
from tallow.transformers.without_effect import effective

Floats = npt.NDArray[np.float32]


class SoundExtractor(Preprocessor):
    """The base of feature extractors: settings, read from a file and written to one."""

    type_key = "feature_extractor_type"
    nested = "feature_extractor"
    sampling_rate: int
    padding_value: float
    return_attention_mask: bool

    @classmethod
    def normal(cls, settings: dict[str, Any]) -> dict[str, Any]:
        named = settings.get(cls.type_key) or settings.get("image_processor_type") or cls.__name__
        if named != cls.__name__:
            raise CheckpointError(
                f"{cls.type_key} is {named!r:.80}", hint="use AutoFeatureExtractor; for images AutoImageProcessor"
            )
        return super().normal(settings)


def strategy_of(padding: Any) -> PaddingStrategy:
    """Return the strategy that an argument `padding` names."""
    return PaddingStrategy.LONGEST if padding is True else PaddingStrategy(padding or "do_not_pad")


def rounded(length: int, multiple: int | None) -> int:
    """Return a length, rounded up to a multiple; None leaves it."""
    return -(-length // multiple) * multiple if multiple else length


def check_call(unknown: dict[str, Any], rate: int, given: int | None) -> None:
    """Warn of arguments without effect.  Raises: ArgumentError for another sampling rate than the model's"""
    unknown = effective("a feature extractor", unknown, {"device": (None, "cpu")})
    if unknown:
        warn(f"a feature extractor has no argument {', '.join(unknown)}; it has no effect")
    if given is not None and given != rate:
        raise ArgumentError(
            f"a sound of {given} Hz; the model takes {rate} Hz", hint="resample it: tallow.audio.Sound reads files so"
        )


def sounds_of(speech: Any) -> list[Floats]:
    """Return sounds as arrays (N,).  Raises: ArgumentError for other shapes"""
    if not isinstance(speech, list | tuple | np.ndarray) and not hasattr(speech, "numpy"):
        raise ArgumentTypeError(
            f"a sound of type {type(speech).__name__}", hint="pass its samples, as tallow.audio reads them"
        )
    first = speech[0] if isinstance(speech, list | tuple) and speech else None
    several = isinstance(first, Sequence | np.ndarray) or hasattr(first, "numpy")
    rows = list(speech) if several or getattr(speech, "ndim", 1) == 2 else [speech]
    sounds = [np.asarray(row.numpy() if hasattr(row, "numpy") else row, np.float32) for row in rows]
    for sound in sounds:
        if sound.ndim != 1 or not len(sound):
            raise ArgumentError(f"a sound of shape {sound.shape}", hint="pass one channel, (N,), or a list of these")
    return sounds
