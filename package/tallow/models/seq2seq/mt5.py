"""MT5 and UMT5: T5 for many languages; the layers of a UMT5 each have a bias of attention of their own.

Loads Hugging Face folders of `MT5ForConditionalGeneration` and `MT5EncoderModel`, and of the same of `UMT5`.

Source:  Xue et al. 2020, arXiv:2010.11934; Chung et al. 2023, arXiv:2304.09151; names as in transformers'
         `modeling_mt5.py` and `modeling_umt5.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.models.seq2seq.t5 import T5Config, T5EncoderModel, T5ForConditionalGeneration


@dataclass(frozen=True, kw_only=True)
class MT5Config(T5Config):
    """The sizes of an MT5, as T5Config."""

    feed_forward_proj: str = "gated-gelu"
    scale_decoder_outputs: bool | None = False

    model_types: ClassVar[tuple[str, ...]] = ("mt5",)
    unread: ClassVar = frozenset({"scale_decoder_outputs"})


class MT5EncoderModel(T5EncoderModel):
    """The encoder of an MT5: hidden states (B, S, D) of texts.  Args: as T5EncoderModel"""

    config_class = MT5Config


class MT5ForConditionalGeneration(T5ForConditionalGeneration):
    """Turns text into text.  Args: as T5ForConditionalGeneration"""

    config_class = MT5Config


@dataclass(frozen=True, kw_only=True)
class UMT5Config(T5Config):
    """The sizes of a UMT5, as T5Config."""

    feed_forward_proj: str = "gated-gelu"

    shares_bias = False
    model_types: ClassVar[tuple[str, ...]] = ("umt5",)


class UMT5EncoderModel(T5EncoderModel):
    """The encoder of a UMT5: hidden states (B, S, D) of texts.  Args: as T5EncoderModel"""

    config_class = UMT5Config


class UMT5ForConditionalGeneration(T5ForConditionalGeneration):
    """Turns text into text.  Args: as T5ForConditionalGeneration"""

    config_class = UMT5Config
