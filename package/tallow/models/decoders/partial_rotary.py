"""The config of models that rotate a part of each head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.llama import LlamaConfig


@dataclass(frozen=True, kw_only=True)
class PartialRotaryConfig(LlamaConfig):
    """The sizes of a Llama, as LlamaConfig.

    Attributes:
        partial_rotary_factor: the share of each head's elements that rotate with the position.
    """

    partial_rotary_factor: float = 1.0

    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    def __post_init__(self) -> None:
        self.require(
            "partial_rotary_factor",
            "more than 0 and at most 1",
            lambda part: type(part) in (int, float) and 0 < part <= 1,
        )
        super().__post_init__()
        self.require(
            "partial_rotary_factor",
            "a share of the heads' elements that is an even number",
            lambda _: self.rotary_width >= 2 and self.rotary_width % 2 == 0,
        )

    @property
    def rotary_width(self) -> int:
        return int(self.head_width * self.partial_rotary_factor)
