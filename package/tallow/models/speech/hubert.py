"""HuBERT: an encoder of waveforms, and its heads. It loads Hugging Face folders of `HubertModel` and others.

Source:  Hsu et al. 2021, arXiv:2106.07447; names as in transformers' `modeling_hubert.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.speech.speech_config import SpeechConfig
from tallow.models.speech.speech_encoder import (
    FeatureProjection,
    PositionalConvolution,
    SpeechEncoder,
    SpeechModel,
    SpeechPretrainedModel,
)
from tallow.models.speech.speech_heads import SpeechForCTC, SpeechForSequenceClassification
from tallow.nn.channel_normalization import BatchNorm1d
from tallow.nn.convolution import Conv1d
from tallow.nn.module import Module


@dataclass(frozen=True, kw_only=True)
class HubertConfig(SpeechConfig):
    """The sizes of a HuBERT; as SpeechConfig.

    Attributes:
        feat_proj_layer_norm: normalize the frames of the convolutions.
        conv_pos_batch_norm: batch norm in the positions' convolution, in place of weight norm.
    """

    feat_proj_layer_norm: bool = True
    conv_pos_batch_norm: bool = False

    model_types: ClassVar[tuple[str, ...]] = ("hubert",)


class BatchNormConvolution(PositionalConvolution):
    """The convolution of positions, after batch norm."""

    def __init__(self, config: HubertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.batch_norm = BatchNorm1d(config.hidden_size, device=device, dtype=dtype)

    def normalized(self, conv: Conv1d) -> Module:
        return conv

    def forward(self, x_BTD: Tensor) -> Tensor:
        return super().forward(self.batch_norm(x_BTD.mT).mT)


class HubertEncoder(SpeechEncoder):
    """The transformer."""

    def positions(self, config: HubertConfig, device: Any, dtype: Any) -> Module:
        kind = BatchNormConvolution if config.conv_pos_batch_norm else PositionalConvolution
        return kind(config, device, dtype)


class HubertPretrainedModel(SpeechPretrainedModel):
    """The base of HuBERT models with and without a head."""

    config_class = HubertConfig
    base_model_prefix = "hubert"
    encoder_class = HubertEncoder


class HubertModel(HubertPretrainedModel, SpeechModel):
    """The encoder without a head.  Args: as SpeechModel"""

    def projection(self, config: HubertConfig, device: Any, dtype: Any) -> FeatureProjection:
        return FeatureProjection(config, device, dtype, has_norm=config.feat_proj_layer_norm)


class HubertForCTC(HubertPretrainedModel, SpeechForCTC):
    """Writes what was said, by letters: logits (B, T, V).  Args: as SpeechModel"""

    model_class = HubertModel


class HubertForSequenceClassification(HubertPretrainedModel, SpeechForSequenceClassification):
    """Labels sounds: logits (B, L).  Args: as SpeechModel"""

    model_class = HubertModel
