"""The base of decoders in which some layers have attention, and the others a state of a fixed size."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.nn.state_memory import KeysValues, LayerShape, States

ATTENTION = "full_attention"


@dataclass(frozen=True, kw_only=True)
class HybridConfig(LlamaConfig):
    """The sizes of a Llama in which some layers have states instead of keys and values, as LlamaConfig.

    Attributes:
        layer_types: for each layer "full_attention" or `state_type`; None means that `attends` decides.
        state_type: the name of layers with states.
    """

    layer_types: tuple[str, ...] | None = None

    state_type: ClassVar[str]
    always_causal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        known = {ATTENTION, self.state_type}
        self.require(
            "layer_types",
            f"'{ATTENTION}' or '{self.state_type}' for each of {self.num_hidden_layers} layers",
            lambda kinds: kinds is None or (len(kinds) == self.num_hidden_layers and {*kinds} <= known),
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        if isinstance(entries.get("layer_types"), list):
            entries["layer_types"] = tuple(map(str, entries["layer_types"]))

    @abstractmethod
    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention, if the config has no layer_types."""

    def has_attention(self, layer: int) -> bool:
        """Return whether a layer has attention."""
        return self.attends(layer) if self.layer_types is None else self.layer_types[layer] == ATTENTION

    @property
    @abstractmethod
    def states(self) -> States:
        """The states of a layer without attention."""

    @property
    def layer_shapes(self) -> tuple[LayerShape, ...]:
        attention = KeysValues(self.num_key_value_heads, self.head_width)
        return tuple(attention if self.has_attention(i) else self.states for i in range(self.num_hidden_layers))


class HybridLlama(Llama):
    """The base of language models in which some layers have states."""

    @property
    def windows(self) -> tuple[int | None, ...]:
        return (None,) * self.config.num_hidden_layers
