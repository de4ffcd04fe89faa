"""M2M100 and NLLB: translation among many languages, a BART whose positions are fixed and count text only.

Loads Hugging Face folders of `M2M100ForConditionalGeneration`.

Letters: T positions, D width.

Source:  Fan et al. 2020, arXiv:2010.11125; NLLB team 2022, arXiv:2207.04672; names as in transformers'
         `modeling_m2m_100.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.core.apply import apply
from tallow.core.creation import arange, from_numpy
from tallow.core.tensor import Tensor
from tallow.dtypes import float32, float64
from tallow.errors import ArgumentError
from tallow.models.seq2seq.bart import LONGEST_PERIOD, BartConfig, BartForConditionalGeneration
from tallow.ops.joining import cat


@dataclass(frozen=True, kw_only=True)
class M2M100Config(BartConfig):
    """The sizes of an M2M100, as BartConfig. Texts begin with the code of their language."""

    activation_function: str = "relu"
    attention_dropout: float = 0.1
    scale_embedding: bool = True

    fixed_positions = True
    normalizes_positions = False
    normalizes_input = True
    counts_text = True
    model_types: ClassVar[tuple[str, ...]] = ("m2m_100",)
    computed: ClassVar[Any] = {
        **BartConfig.computed,
        "normalize_embedding": (False, None),
        **dict.fromkeys(("normalize_before", "add_final_layer_norm"), (True,)),
        "static_position_embeddings": (False, True),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model < 4 or self.d_model % 2:
            raise ArgumentError(f"M2M100Config: d_model={self.d_model}", hint="pass an even number from 4")

    def sinusoids(self, length: int) -> npt.NDArray[np.float32]:
        """As in BartConfig, with other periods: the first text has the position after that of the padding."""
        first = self.pad_token_id + 1
        angles = np.arange(first, first + length, dtype=np.float32)[:, None] * self._frequencies()
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1, dtype=np.float32)

    def computed_sinusoids(self, start: int, end: int) -> Tensor:
        first = self.pad_token_id + 1
        positions = arange(start + first, end + first, dtype=float64, device=devices.CPU)
        angles = positions[:, None] * from_numpy(self._frequencies().astype(np.float64))
        return apply(cat, [angles.sin(), angles.cos()], 1).to(float32)

    def _frequencies(self) -> npt.NDArray[np.float32]:
        half = self.d_model // 2
        return np.exp(np.arange(half, dtype=np.float32) * np.float32(-np.log(LONGEST_PERIOD) / (half - 1)))


class M2M100ForConditionalGeneration(BartForConditionalGeneration):
    """Translates text.  Args: as BartForConditionalGeneration"""

    config_class = M2M100Config
