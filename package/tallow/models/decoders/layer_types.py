"""Models in which some layers have a sliding window."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.config import rope_entries
from tallow.models.decoders.llama import LlamaConfig, LlamaModel
from tallow.nn.rope_scaling import frequencies
from tallow.nn.rotary import RotaryEmbedding

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

    @abstractmethod
    def slides(self, layer: int) -> bool:
        """Return whether a layer has the sliding window, if the config has no layer_types."""

    def is_sliding(self, layer: int) -> bool:
        """Return whether a layer has the sliding window."""
        return self.slides(layer) if self.layer_types is None else self.layer_types[layer] == SLIDING

    def window_of(self, layer: int) -> int | None:
        return self.sliding_window if self.is_sliding(layer) else None


@dataclass(frozen=True, kw_only=True)
class LocalRotaryConfig(LayerTypesConfig):
    """The sizes of a model whose layers with a sliding window have rotary angles of their own, as LayerTypesConfig;
    `rope_theta` and `rope_scaling` are those of the other layers.

    Attributes:
        rope_local_base_freq, rope_local_scaling: the base and the scaling of rotary angles in layers with a sliding
            window; None for the base means rope_theta.
    """

    rope_local_base_freq: float | None = None
    rope_local_scaling: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("rope_local_base_freq", "a positive number", lambda value: value is None or value > 0)
        self.require("rope_local_scaling", "a mapping or None", lambda value: isinstance(value, Mapping | None))
        # Raises for an unsupported scaling.
        frequencies(self.head_width, self.local_theta, self.rope_local_scaling, self.max_position_embeddings)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        """As LlamaConfig, after `rope_parameters` with settings for both kinds of layers is divided."""
        rope = entries.get("rope_parameters")
        if isinstance(rope, dict) and not {*rope}.isdisjoint(LAYER_TYPES):
            local = {"rope_parameters": rope.get(SLIDING)}
            rope_entries(local)
            entries["rope_local_scaling"] = local.pop("rope_scaling")
            entries |= {f"rope_local_{name}": value for name, value in local.items()}
            if "rope_local_rope_theta" in entries:
                entries["rope_local_base_freq"] = entries.pop("rope_local_rope_theta")
            entries["rope_parameters"] = rope.get(FULL)
        super().prepare(entries)

    @property
    def local_theta(self) -> float:
        """The base of rotary angles in layers with a sliding window."""
        return self.rope_theta if self.rope_local_base_freq is None else self.rope_local_base_freq


class LocalRotaryModel(LlamaModel):
    """The base of models of a LocalRotaryConfig.  Args: as DecoderModel"""

    def __init__(self, config: LocalRotaryConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.rotary_emb_local = RotaryEmbedding(
            config.head_width,
            config.local_theta,
            scaling=config.rope_local_scaling,
            context=config.max_position_embeddings,
        )

    def rotary_of(self, layer: int) -> RotaryEmbedding:
        return self.rotary_emb_local if self.config.is_sliding(layer) else self.rotary_emb
