"""wav2vec2: an encoder of waveforms, and its heads. It loads Hugging Face folders of `Wav2Vec2Model` and others.

Source:  Baevski et al. 2020, arXiv:2006.11477; names as in transformers' `modeling_wav2vec2.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.models.speech.speech_config import SpeechConfig
from tallow.models.speech.speech_encoder import SpeechModel, SpeechPretrainedModel
from tallow.models.speech.speech_heads import (
    SpeechForAudioFrameClassification,
    SpeechForCTC,
    SpeechForSequenceClassification,
    SpeechForXVector,
)


@dataclass(frozen=True, kw_only=True)
class Wav2Vec2Config(SpeechConfig):
    """The sizes of a wav2vec2; as SpeechConfig.

    Attributes:
        adapter_attn_dim: the width of each layer's part for one language; None for models without it.
    """

    adapter_attn_dim: int | None = None

    model_types: ClassVar[tuple[str, ...]] = ("wav2vec2",)


class Wav2Vec2PretrainedModel(SpeechPretrainedModel):
    """The base of wav2vec2 models with and without a head."""

    config_class = Wav2Vec2Config
    base_model_prefix = "wav2vec2"


class Wav2Vec2Model(Wav2Vec2PretrainedModel, SpeechModel):
    """The encoder without a head.  Args: as SpeechModel"""


class Wav2Vec2ForCTC(Wav2Vec2PretrainedModel, SpeechForCTC):
    """Writes what was said, by letters: logits (B, T, V).  Args: as SpeechModel"""

    model_class = Wav2Vec2Model


class Wav2Vec2ForSequenceClassification(Wav2Vec2PretrainedModel, SpeechForSequenceClassification):
    """Labels sounds: logits (B, L).  Args: as SpeechModel"""

    model_class = Wav2Vec2Model


class Wav2Vec2ForAudioFrameClassification(Wav2Vec2PretrainedModel, SpeechForAudioFrameClassification):
    """Labels frames: logits (B, T, L).  Args: as SpeechModel"""

    model_class = Wav2Vec2Model


class Wav2Vec2ForXVector(Wav2Vec2PretrainedModel, SpeechForXVector):
    """Returns a vector for each speaker.  Args: as SpeechModel"""

    model_class = Wav2Vec2Model
