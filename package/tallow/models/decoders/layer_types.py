"""The config of models in which some layers have a sliding window."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.config import rope_entries
from tallow.models.decoders.llama import LlamaConfig

LAYER_TYPES = FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, kw_only=True)
class LayerTypesConfig(LlamaConfig):
    """The sizes of a Llama, as LlamaConfig.

    Attributes:
        layer_types: for each layer "full_attention" or "sliding_attention"; None means that `slides` decides.
    """

    layer_types: tuple[str, ...] | None = None

    unread: ClassVar[frozenset[str]] = frozenset({"mlp_bias"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            "layer_types",
            f"one of {LAYER_TYPES} for each layer",
            lambda kinds: kinds is None or (len(kinds) == self.num_hidden_layers and {*kinds} <= {*LAYER_TYPES}),
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if isinstance(entries.get("layer_types"), list):
            entries["layer_types"] = tuple(map(str, entries["layer_types"]))

    @staticmethod
    def local_rotary(entries: dict[str, Any]) -> None:
        """Move the rotary settings of layers with a sliding window to `rope_local_base_freq` and `rope_local_scaling`,
        in place, from `rope_parameters` with settings for both kinds of layers."""
        rope = entries.get("rope_parameters")
        if not isinstance(rope, dict) or {*rope}.isdisjoint(LAYER_TYPES):
            return
        local = {"rope_parameters": rope.get(SLIDING)}
        rope_entries(local)
        entries["rope_local_scaling"] = local.pop("rope_scaling")
        entries |= {f"rope_local_{name}": value for name, value in local.items()}
        if "rope_local_rope_theta" in entries:
            entries["rope_local_base_freq"] = entries.pop("rope_local_rope_theta")
        entries["rope_parameters"] = rope.get(FULL)

    @abstractmethod
    def slides(self, layer: int) -> bool:
        """Return whether a layer has the sliding window, if the config has no layer_types."""

    def is_sliding(self, layer: int) -> bool:
        """Return whether a layer has the sliding window."""
        return self.slides(layer) if self.layer_types is None else self.layer_types[layer] == SLIDING

    def window_of(self, layer: int) -> int | None:
        return self.sliding_window if self.is_sliding(layer) else None
