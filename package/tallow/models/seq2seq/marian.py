"""Marian: the translation models of the Helsinki group, a BART with fixed positions.

Loads Hugging Face folders of `MarianMTModel`.

Source:  Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names as in transformers' `modeling_marian.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tallow.models.seq2seq.bart import BartConfig, BartForConditionalGeneration


@dataclass(frozen=True, kw_only=True)
class MarianConfig(BartConfig):
    """The sizes of a Marian, named as in Hugging Face's `config.json`, which `from_json` reads; as BartConfig.

    Attributes:
        decoder_vocab_size: of the decoder, if it does not share the encoder's vocabulary; None means `vocab_size`.
    """

    decoder_vocab_size: int | None = None
    share_encoder_decoder_embeddings: bool = True  # type: ignore[misc]  # a field here
    pad_token_id: int = 58100
    decoder_start_token_id: int | None = None
    eos_token_id: tuple[int, ...] = (0,)

    fixed_positions = True
    normalizes_positions = False
    model_types: ClassVar[tuple[str, ...]] = ("marian",)
    computed: ClassVar = {
        **BartConfig.computed,
        "static_position_embeddings": (True,),
        "normalize_embedding": (False,),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share_encoder_decoder_embeddings:
            same = (None, self.vocab_size)
            self.require("decoder_vocab_size", f"{self.vocab_size}, which is shared", lambda size: size in same)

    @property
    def text_vocab_size(self) -> int:
        return self.decoder_vocab_size or self.vocab_size


class MarianMTModel(BartForConditionalGeneration):
    """Translates text.  Args: as BartForConditionalGeneration

    Example:
        model = MarianMTModel.from_pretrained("Helsinki-NLP/opus-mt-en-de")
        tokens = list(model.generate_ids(ids))
    """

    config_class = MarianConfig
