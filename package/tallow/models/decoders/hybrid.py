"""The base of decoders in which some layers have attention, and the others a state of a fixed size."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.dtypes import Array, widen
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.decode_block import Block
from tallow.kernels.blocks.state_block import GatedConvolution, GatedDeltaRule, StateBlock
from tallow.models.decoders.experts import SparseLlama
from tallow.models.decoders.llama import LlamaConfig
from tallow.nn.cache import KVCache
from tallow.nn.short_convolution import ShortConvolution
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


class HybridLlama(SparseLlama):
    """The base of language models in which some layers have states. Some have experts, too."""

    @property
    def windows(self) -> tuple[int | None, ...]:
        return (None,) * self.config.num_hidden_layers

    def fused_limit(self, cache: KVCache) -> str | None:
        if cache.device.type != "cpu":
            return f"no fused block computes states on {cache.device}"
        return super().fused_limit(cache)

    def fused_block(self, layer: Any, index: int, cache: KVCache, eps: float) -> Block:
        if layer.has_attention:
            return super().fused_block(layer, index, cache, eps)
        norm, mlp_norm = self.fused_norms(layer)
        mixer, output = self.fused_mixer(layer, cache)
        return StateBlock(norm, mixer, output, mlp_norm, eps=eps, positions=cache.capacity, **self.fused_mlp(layer))

    def fused_mixer(self, layer: Any, cache: KVCache) -> tuple[GatedConvolution | GatedDeltaRule, Affine]:
        """Return what a layer without attention has instead, and its last projection."""
        raise NotImplementedError


def kernel_rows(convolution: ShortConvolution) -> Array:
    """Return the kernel of each channel in float32, (C, W)."""
    return widen(convolution.weight.array).reshape(convolution.weight.shape[0], -1)
