"""From sound to the input of Whisper: log-mel spectrograms, of `tallow.audio`.

Source:  transformers 5.23, `WhisperFeatureExtractor`
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tallow.audio.mel import HOP, N_FFT, log_mel_spectrogram
from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.errors import ArgumentError, UnsupportedError
from tallow.transformers.padding import PaddingStrategy
from tallow.transformers.preprocessing import BatchFeature
from tallow.transformers.sound_inputs import SoundExtractor, check_call, rounded, sounds_of, strategy_of
from tallow.transformers.tensor_types import TensorType

_FIXED = {"n_fft": N_FFT, "hop_length": HOP, "sampling_rate": SAMPLE_RATE_HZ, "dither": 0.0}


class WhisperFeatureExtractor(SoundExtractor):
    """Turns sound into log-mel spectrograms.

    Attributes:
        feature_size: the number of mel bins.
        sampling_rate: in Hz.
        chunk_length: seconds of the model's input.
        n_samples, nb_max_frames: samples and frames of it.
        padding_value: the sample of silence.
        return_attention_mask: whether a call returns it without being asked.

    Raises:  UnsupportedError for another rate, window or step than Whisper's, and for dither
    """

    defaults: ClassVar = {
        **_FIXED,
        "feature_size": 80,
        "chunk_length": 30,
        "padding_value": 0.0,
        "padding_side": "right",
        "return_attention_mask": False,
    }
    model_input_names: ClassVar = ["input_features"]
    feature_size: int
    hop_length: int
    chunk_length: int

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, value in _FIXED.items():
            if vars(self)[name] != value:
                raise UnsupportedError(
                    f"{name}={vars(self)[name]!r:.80}: spectrograms are Whisper's", hint=f"pass {value}"
                )
        self.n_samples = self.chunk_length * self.sampling_rate
        self.nb_max_frames = self.n_samples // self.hop_length

    @classmethod
    def normal(cls, settings: dict[str, Any]) -> dict[str, Any]:
        settings.pop("mel_filters", None)  # of older files
        return super().normal(settings)

    def __call__(
        self,
        raw_speech: Any,
        truncation: bool = True,
        pad_to_multiple_of: int | None = None,
        return_tensors: str | TensorType | None = None,
        return_attention_mask: bool | None = None,
        padding: bool | str | PaddingStrategy | None = "max_length",
        max_length: int | None = None,
        sampling_rate: int | None = None,
        do_normalize: bool | None = None,
        **kwargs: Any,
    ) -> BatchFeature:
        """Return the spectrograms of one sound or several.

        Args:
            raw_speech: samples: an array, a tensor or a list of numbers; or a list of these.
            truncation: cut longer sounds to `max_length`.
            pad_to_multiple_of: pad to a multiple of so many samples.
            return_tensors: "pt" for tensors; None and "np" for arrays.
            return_attention_mask: add `attention_mask`, 1 for the frames of the sound.
            padding: "max_length", "longest" for that of the batch, or "do_not_pad".
            max_length: samples; None means `n_samples`.
            sampling_rate: that of the sound, in Hz.
            do_normalize: subtract the mean of the samples and divide by their standard deviation.

        Shapes:  input_features (B, feature_size, T), float32; attention_mask (B, T), int32
        Raises:  ArgumentError for another sampling rate, several channels, and sounds of unequal lengths
        """
        check_call(kwargs, self.sampling_rate, sampling_rate)
        limit = rounded(max_length or self.n_samples, pad_to_multiple_of)
        sounds = [sound[:limit] if truncation else sound for sound in sounds_of(raw_speech)]
        strategy = strategy_of(padding)
        length = limit if strategy is PaddingStrategy.MAX_LENGTH else max(map(len, sounds))
        length = rounded(length, pad_to_multiple_of)
        if strategy is PaddingStrategy.DO_NOT_PAD and len({*map(len, sounds)}) > 1:
            raise ArgumentError("sounds of unequal lengths", hint="pass padding='longest' or padding='max_length'")
        if do_normalize:
            sounds = [(sound - sound.mean()) / np.sqrt(sound.var() + np.float32(1e-7)) for sound in sounds]
        counts = [len(sound) for sound in sounds]
        rows = [np.pad(s, (0, max(0, length - len(s))), constant_values=self.padding_value) for s in sounds]
        data: dict[str, Any] = {
            "input_features": np.stack([log_mel_spectrogram(row, self.feature_size) for row in rows])
        }
        if return_attention_mask or do_normalize or self.return_attention_mask:
            mask = np.arange(len(rows[0])) < np.array(counts)[:, None]
            if return_attention_mask:  # else of samples, as in transformers
                mask = mask[:, :: self.hop_length][:, : len(rows[0]) // self.hop_length]
            data["attention_mask"] = mask.astype(np.int32)
        return BatchFeature(data, tensor_type=return_tensors)
