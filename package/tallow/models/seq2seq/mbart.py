"""mBART: a BART for many languages whose layers normalize their input.

Loads Hugging Face folders of `MBartForConditionalGeneration`.

Letters: B texts, T positions.

Source:  Liu et al. 2020, arXiv:2001.08210; names as in transformers' `modeling_mbart.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.seq2seq.bart import BartConfig, BartForConditionalGeneration
from tallow.models.seq2seq.model import IGNORED


@dataclass(frozen=True, kw_only=True)
class MBartConfig(BartConfig):
    """The sizes of an mBART, as BartConfig. Texts begin with the code of their language."""

    decoder_start_token_id: int | None = None

    normalizes_input = True
    model_types: ClassVar[tuple[str, ...]] = ("mbart",)
    computed: ClassVar[Any] = {
        **BartConfig.computed,
        **dict.fromkeys(("normalize_before", "add_final_layer_norm"), (True,)),
    }

    def shifted(self, labels_BT: Tensor) -> Tensor:
        return wrapped(labels_BT, self.pad_token_id)


class MBartForConditionalGeneration(BartForConditionalGeneration):
    """Translates text.  Args: as BartForConditionalGeneration"""

    config_class = MBartConfig


def wrapped(labels_BT: Tensor, padding: int) -> Tensor:
    """Return the decoder's input for labels that end with the code of their language, which comes first."""
    tokens_BT = labels_BT.masked_fill(labels_BT == IGNORED, padding)
    last_B1 = tokens_BT.ne(padding).sum(1, keepdim=True) - 1
    shifted_BT = tokens_BT.roll(1, -1)
    shifted_BT[:, :1] = tokens_BT.gather(1, last_B1)
    return shifted_BT
