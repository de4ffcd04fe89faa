"""WavLM: an encoder of waveforms with gated relative positions, and its heads. It loads Hugging Face folders of
`WavLMModel` and others.

Letters: B batch, T frames, D width, H heads, K width of a head.

Source:  Chen et al. 2021, arXiv:2110.13900; names as in transformers' `modeling_wavlm.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.creation import ones
from tallow.core.tensor import Tensor
from tallow.models.speech.speech_config import SpeechConfig
from tallow.models.speech.speech_encoder import SpeechAttention, SpeechEncoder, SpeechModel, SpeechPretrainedModel
from tallow.models.speech.speech_heads import (
    SpeechForAudioFrameClassification,
    SpeechForCTC,
    SpeechForSequenceClassification,
    SpeechForXVector,
)
from tallow.nn.attention import split_heads
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.nn.relative_positions import bucket_bias

GATES = 8  # two gates, each the sum of four projections


@dataclass(frozen=True, kw_only=True)
class WavLMConfig(SpeechConfig):
    """The sizes of a WavLM; as SpeechConfig.

    Attributes:
        num_buckets, max_bucket_distance: see `nn.relative_positions.buckets`.
    """

    num_buckets: int = 320
    max_bucket_distance: int = 800

    model_types: ClassVar[tuple[str, ...]] = ("wavlm",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("num_buckets", "a multiple of 4", lambda count: count % 4 == 0)
        self.require("max_bucket_distance", "more than num_buckets / 4", lambda most: most > self.num_buckets // 4)


class WavLMAttention(SpeechAttention):
    """Self-attention whose scores have a term for distances, with gates that the query opens.

    `context` is that term (1, H, T, T), and the mask of keys or None.
    """

    def __init__(self, config: WavLMConfig, device: Any, dtype: Any, *, has_table: bool) -> None:
        super().__init__(config, device, dtype)
        factory = {"device": device, "dtype": dtype}
        self.gru_rel_pos_const = Parameter(ones((1, self.num_heads, 1, 1), **factory))
        self.gru_rel_pos_linear = Linear(config.hidden_size // self.num_heads, GATES, **factory)
        if has_table:
            self.rel_attn_embed = Embedding(config.num_buckets, self.num_heads, **factory)

    def forward(self, x_BTD: Tensor, context: Any = None) -> Tensor:
        bias_1HTT, mask = context
        gates_BHT8 = self.gru_rel_pos_linear(split_heads(x_BTD, self.num_heads))
        gates_BHT2 = gates_BHT8.reshape(*gates_BHT8.shape[:-1], 2, GATES // 2).sum(-1).sigmoid()
        one_BHT1, two_BHT1 = gates_BHT2.chunk(2, -1)
        bias_BHTT = (one_BHT1 * (two_BHT1 * self.gru_rel_pos_const - 1.0) + 2.0) * bias_1HTT
        if mask is not None:
            bias_BHTT = bias_BHTT.masked_fill(~mask, -math.inf)
        return self.attend(x_BTD, bias_BHTT)


class WavLMEncoder(SpeechEncoder):
    """The transformer."""

    def attention(self, config: WavLMConfig, index: int, device: Any, dtype: Any) -> Module:
        self.longest = config.max_bucket_distance
        return WavLMAttention(config, device, dtype, has_table=index == 0)

    def context(self, mask: Tensor | None, length: int) -> Any:
        table = self.layers[0].attention.rel_attn_embed
        return bucket_bias(table, length, length, bidirectional=True, longest=self.longest), mask


class WavLMPretrainedModel(SpeechPretrainedModel):
    """The base of WavLM models with and without a head."""

    config_class = WavLMConfig
    base_model_prefix = "wavlm"
    encoder_class = WavLMEncoder


class WavLMModel(WavLMPretrainedModel, SpeechModel):
    """The encoder without a head.  Args: as SpeechModel"""


class WavLMForCTC(WavLMPretrainedModel, SpeechForCTC):
    """Writes what was said, by letters: logits (B, T, V).  Args: as SpeechModel"""

    model_class = WavLMModel


class WavLMForSequenceClassification(WavLMPretrainedModel, SpeechForSequenceClassification):
    """Labels sounds: logits (B, L).  Args: as SpeechModel"""

    model_class = WavLMModel


class WavLMForAudioFrameClassification(WavLMPretrainedModel, SpeechForAudioFrameClassification):
    """Labels frames: logits (B, T, L).  Args: as SpeechModel"""

    model_class = WavLMModel


class WavLMForXVector(WavLMPretrainedModel, SpeechForXVector):
    """Returns a vector for each speaker.  Args: as SpeechModel"""

    model_class = WavLMModel
