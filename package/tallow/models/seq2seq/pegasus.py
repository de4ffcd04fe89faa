"""Pegasus: a BART that writes summaries, with fixed positions and layers that normalize their input.

Loads Hugging Face folders of `PegasusForConditionalGeneration`.

Source:  Zhang et al. 2019, arXiv:1912.08777; names as in transformers' `modeling_pegasus.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.seq2seq.bart import BartConfig, BartForConditionalGeneration


@dataclass(frozen=True, kw_only=True)
class PegasusConfig(BartConfig):
    """The sizes of a Pegasus, as BartConfig."""

    pad_token_id: int = 0
    decoder_start_token_id: int | None = 0
    eos_token_id: tuple[int, ...] = (1,)

    fixed_positions = True
    normalizes_positions = False
    normalizes_input = True
    model_types: ClassVar[tuple[str, ...]] = ("pegasus",)
    computed: ClassVar[Any] = {
        **BartConfig.computed,
        "normalize_embedding": (False,),
        **dict.fromkeys(("normalize_before", "add_final_layer_norm", "static_position_embeddings"), (True,)),
    }
    neutral: ClassVar[Any] = BartConfig.neutral | {"max_source_length", "max_target_length"}


class PegasusForConditionalGeneration(BartForConditionalGeneration):
    """Summarizes text.  Args: as BartForConditionalGeneration"""

    config_class = PegasusConfig
