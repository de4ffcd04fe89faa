"""From sound to the input of wav2vec2 and its relatives: samples, normalized.

Source:  transformers 5.23, `Wav2Vec2FeatureExtractor` and `SequenceFeatureExtractor`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tallow.errors import ArgumentError
from tallow.transformers.padding import PaddingStrategy
from tallow.transformers.preprocessing import BatchFeature
from tallow.transformers.sound_inputs import Floats, SoundExtractor, check_call, rounded, sounds_of, strategy_of
from tallow.transformers.tensor_types import TensorType

EPSILON = 1e-7  # added to the variance


class Wav2Vec2FeatureExtractor(SoundExtractor):
    """Turns sounds into samples with mean 0 and variance 1, of equal lengths.

    Attributes:
        sampling_rate: in Hz.
        padding_value, padding_side: the sample of padding, and where it is.
        do_normalize: subtract the mean of a sound and divide by its standard deviation.
        return_attention_mask: whether a call returns it without being asked.
    """

    defaults: ClassVar = {
        "feature_size": 1,
        "sampling_rate": 16000,
        "padding_value": 0.0,
        "padding_side": "right",
        "return_attention_mask": False,
        "do_normalize": True,
    }
    model_input_names: ClassVar = ["input_values", "attention_mask"]
    padding_side: str
    do_normalize: bool

    def __call__(
        self,
        raw_speech: Any,
        padding: bool | str | PaddingStrategy = False,
        max_length: int | None = None,
        truncation: bool = False,
        pad_to_multiple_of: int | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | TensorType | None = None,
        sampling_rate: int | None = None,
        **kwargs: Any,
    ) -> BatchFeature:
        """Return the samples of one sound or several.

        Args:
            raw_speech: samples: an array, a tensor or a list of numbers; or a list of these.
            padding: True or "longest" pads to the longest, "max_length" to `max_length`.
            max_length: samples.
            truncation: cut longer sounds to `max_length`.
            pad_to_multiple_of: pad to a multiple of so many samples.
            return_attention_mask: add `attention_mask`, 1 for the samples of the sound.
            return_tensors: "pt" for tensors, "np" for arrays; None for a list of arrays.
            sampling_rate: that of the sound, in Hz.

        Shapes:  input_values (B, N), float32; attention_mask (B, N), int32
        Raises:  ArgumentError for another sampling rate, several channels, a sound without samples, and arguments that
                 contradict each other
        """
        check_call(kwargs, self.sampling_rate, sampling_rate)
        strategy = strategy_of(padding)
        if max_length is None and truncation:
            raise ArgumentError("truncation to no length", hint="pass max_length")
        limit = rounded(max_length, pad_to_multiple_of) if max_length is not None else None
        sounds = [sound[:limit] if truncation else sound for sound in sounds_of(raw_speech)]
        lengths = [len(sound) for sound in sounds]
        asked = self.return_attention_mask if return_attention_mask is None else return_attention_mask
        rows, marks = self._filled(sounds, strategy, max_length, pad_to_multiple_of)
        if self.do_normalize:
            is_known = asked and strategy is not PaddingStrategy.DO_NOT_PAD
            known = lengths if is_known else [len(row) for row in rows]
            rows = [self._normal(row, length) for row, length in zip(rows, known, strict=True)]
        data: dict[str, Any] = {"input_values": rows} | ({"attention_mask": marks} if asked else {})
        return BatchFeature(data, tensor_type=return_tensors)

    def pad(
        self,
        processed_features: Any,
        padding: bool | str | PaddingStrategy = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | TensorType | None = None,
    ) -> BatchFeature:
        """Return samples that a call returned with the same length.

        Args:
            processed_features: a dict with `input_values`, or a list of these, one for each sound.
            others: as of the call.

        Raises:  ArgumentError without `input_values`, and as the call does
        """
        try:
            values = (
                processed_features["input_values"]
                if isinstance(processed_features, Mapping)
                else [each["input_values"] for each in processed_features]
            )
        except (KeyError, TypeError) as error:
            raise ArgumentError("features without input_values", hint="pass what the extractor returned") from error
        sounds = [np.asarray(sound, np.float32).reshape(-1) for sound in sounds_of(list(values))]
        rows, marks = self._filled(sounds, strategy_of(padding), max_length, pad_to_multiple_of)
        asked = self.return_attention_mask if return_attention_mask is None else return_attention_mask
        data = {"input_values": rows} | ({"attention_mask": marks} if asked else {})
        return BatchFeature(data, tensor_type=return_tensors)

    def _filled(
        self, sounds: list[Floats], strategy: PaddingStrategy, max_length: int | None, multiple: int | None
    ) -> tuple[list[Any], list[Any]]:
        """Return the rows with padding, and for each sample whether it is of the sound."""
        if strategy is PaddingStrategy.DO_NOT_PAD:
            return sounds, [np.ones(len(sound), np.int32) for sound in sounds]
        if strategy is PaddingStrategy.MAX_LENGTH and max_length is None:
            raise ArgumentError("padding to no length", hint="pass max_length")
        wanted = max_length if strategy is PaddingStrategy.MAX_LENGTH else max(map(len, sounds))
        length = rounded(int(wanted or 0), multiple)
        around = [
            (0, more) if self.padding_side == "right" else (more, 0)
            for more in (max(0, length - len(s)) for s in sounds)
        ]
        rows = [np.pad(s, n, constant_values=self.padding_value) for s, n in zip(sounds, around, strict=True)]
        return rows, [np.pad(np.ones(len(s), np.int32), n) for s, n in zip(sounds, around, strict=True)]

    def _normal(self, row: Floats, length: int) -> Floats:
        """Return samples with the mean and the variance of the first `length` removed; the others become padding."""
        part = row[:length]
        normal = (row - part.mean()) / np.sqrt(part.var() + np.float32(EPSILON))
        normal[length:] = self.padding_value
        return normal
