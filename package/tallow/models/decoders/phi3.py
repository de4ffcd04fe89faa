"""Phi-3: Llama's transformer, with one matrix for queries, keys and values, and one for gate and up.

Loads Hugging Face folders of `Phi3ForCausalLM` (also Phi-4-mini), `Phi3Model`, and the heads for texts and tokens.

Source:  Abdin et al. 2024, arXiv:2404.14219; names as in transformers' `modeling_phi3.py`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.fused.decoder import FusedCache
from tallow.models.activations import activation_named, gated
from tallow.models.decoders.llama import Llama, LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaModel
from tallow.models.decoders.partial_rotary import PartialRotaryConfig
from tallow.nn.attention import split_heads
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.rope_scaling import ORIGINAL


@dataclass(frozen=True, kw_only=True)
class Phi3Config(PartialRotaryConfig):
    """The sizes of a Phi-3, as PartialRotaryConfig.

    Attributes:
        original_max_position_embeddings: the context before the model was trained on longer texts. `rope_scaling` of
            type "longrope" uses other angles for texts beyond it; this entry replaces the one in `rope_scaling`.
    """

    max_position_embeddings: int = 4096
    original_max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    eos_token_id: tuple[int, ...] = (32000,)
    pad_token_id: int | None = 32000

    model_types: ClassVar[tuple[str, ...]] = ("phi3",)
    unread: ClassVar[frozenset[str]] = frozenset({"attention_bias", "mlp_bias"})
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "resid_pdrop": (0.0,),
        "embd_pdrop": (0.0,),
        "lm_head_bias": (False,),
        "full_attn_mod": (1,),
        "interpolate_factor": (1,),
    }

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        rope = entries["rope_scaling"]
        if not isinstance(rope, dict):
            return
        kind = rope.pop("type", "default")
        rope.setdefault("rope_type", kind)
        if rope["rope_type"] in ("su", "yarn"):  # its names in the first configs
            rope["rope_type"] = "longrope"
        if rope["rope_type"] == "longrope":
            rope[ORIGINAL] = entries.get(ORIGINAL) or cls.original_max_position_embeddings


class Phi3Attention(LlamaAttention):
    """Llama's attention with one matrix for queries, keys and values, in this order."""

    def add_projections(self, config: LlamaConfig, device: Any, dtype: Any) -> None:
        heads = self.num_heads + 2 * self.num_kv_heads
        self.qkv_proj = Linear(config.hidden_size, heads * config.head_width, config.input_bias, device, dtype)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        heads = split_heads(self.qkv_proj(x_BTD), self.num_heads + 2 * self.num_kv_heads)
        q_BHTK, k_BGTK, v_BGTK = heads.split([self.num_heads, self.num_kv_heads, self.num_kv_heads], 1)
        return q_BHTK, k_BGTK, v_BGTK


class Phi3MLP(Module):
    """down(activation(gate) ⊙ up), where gate and up are the halves of one matrix's output."""

    names: ClassVar[tuple[str, str]] = ("gate_up_proj", "down_proj")

    def __init__(self, config: LlamaConfig, device: Any, dtype: Any, hidden: int | None = None) -> None:
        super().__init__()
        width, hidden, bias = config.hidden_size, hidden or config.intermediate_size, config.feed_forward_bias
        both, down = self.names
        self.add_module(both, Linear(width, 2 * hidden, bias, device, dtype))
        self.add_module(down, Linear(hidden, width, bias, device, dtype))
        self.activation = activation_named(config.activation)

    def forward(self, x_BTD: Tensor) -> Tensor:
        both, down = (getattr(self, name) for name in self.names)
        return down(gated(self.activation, *both(x_BTD).chunk(2, -1)))


class Phi3DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Phi-3's matrices."""

    attention_class = Phi3Attention
    mlp_class = Phi3MLP


class Phi3Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = Phi3Config
    layer_class = Phi3DecoderLayer


class Phi3Cache(FusedCache):
    """A cache that can be recomputed: it keeps the tokens, and whether their keys have the angles of a long text."""

    def __init__(self, layers: int, batch: int, kv_heads: int, length: int, head_dim: int, **options: Any) -> None:
        super().__init__(layers, batch, kv_heads, length, head_dim, **options)
        self.tokens: Array = devices.move(np.zeros((batch, length), np.int64), self.device)
        self.is_long = False

    def clear(self) -> None:
        """Remove all positions, but keep their tokens."""
        self.length = 0
        for layer in self.layers:
            layer.first = 0

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) != list(range(self.batch)):
            self.tokens = self.tokens[devices.move(np.array(rows, np.int64), self.device)]
        super().select(rows)


class Phi3(Llama):
    """A language model; Hugging Face's `Phi3ForCausalLM`.

    With "longrope", all positions of a text rotate by other angles once it exceeds the original context. The model then
    reads the tokens in the cache again.

    Args:    as DecoderModel
    """

    model_class = Phi3Model
    cache_class = Phi3Cache

    def hidden(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        if cache is None or self.unscaled_length is None:
            return super().hidden(tokens_BT, cache)
        assert isinstance(cache, Phi3Cache)
        start, new = cache.length, tokens_BT.shape[1]
        if start + new <= cache.capacity:
            cache.tokens[:, start : start + new] = tokens_BT.array
        is_long = start + new > self.unscaled_length
        if is_long != cache.is_long and start:
            cache.clear()
            tokens_BT = wrap(cache.tokens[:, : start + new])
        cache.is_long = is_long
        return super().hidden(tokens_BT, cache)[:, -new:]

    @property
    def prefill_chunk(self) -> int | None:
        return super(Llama, self).prefill_chunk  # `hidden` reads the first chunks again if the text is long
