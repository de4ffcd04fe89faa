"""Marian: the translation models of the Helsinki group, a BART with fixed positions.

Loads Hugging Face folders of `MarianMTModel`.

Source:  Junczys-Dowmunt et al. 2018, arXiv:1804.00344; names as in transformers' `modeling_marian.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from tallow.errors import TokenizerError
from tallow.models.bart import BartConfig, BartForConditionalGeneration
from tallow.text.tokenizer import FILE, Tokenizer


@dataclass(frozen=True, kw_only=True)
class MarianConfig(BartConfig):
    """The sizes of a Marian, named as in Hugging Face's `config.json`, which `from_json` reads."""

    pad_token_id: int = 58100
    decoder_start_token_id: int | None = None
    eos_token_id: tuple[int, ...] = (0,)

    fixed_positions = True
    model_types: ClassVar[tuple[str, ...]] = ("marian",)
    computed: ClassVar = {
        **BartConfig.computed,
        **dict.fromkeys(("static_position_embeddings", "share_encoder_decoder_embeddings"), (True,)),
        "normalize_embedding": (False,),
    }

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if entries.get("decoder_vocab_size") == entries.get("vocab_size"):
            entries.pop("decoder_vocab_size", None)


class MarianMTModel(BartForConditionalGeneration):
    """Translates text.  Args: as BartForConditionalGeneration

    Example:
        model = MarianMTModel.from_pretrained("Helsinki-NLP/opus-mt-en-de")
        tokens = list(model.generate_ids(ids))
    """

    config_class = MarianConfig

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """As `TextGeneration.tokenizer`; most folders lack the file.

        Raises:  TokenizerError for a folder with `source.spm` only
        """
        if self.folder is not None and not (self.folder / FILE).exists():
            raise TokenizerError(
                f"{self.folder} has no {FILE}; tallow does not read source.spm",
                hint="convert it with the scripts of transformers.js, or take the file from a repository that they "
                "converted, such as Xenova/opus-mt-en-de",
            )
        return super().tokenizer

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.endswith(".embed_positions.weight")
