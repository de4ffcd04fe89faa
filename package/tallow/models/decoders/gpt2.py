"""GPT-2: a decoder-only transformer with learned positions and a norm before each part.

Loads Hugging Face folders of `GPT2LMHeadModel`, `GPT2DoubleHeadsModel`, `GPT2Model`, and the heads for texts, tokens
and answers.

Letters: B batch, T query positions, S key positions, D width, H heads, K head width, F feed-forward width,
V vocabulary.

Source:  Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; names as in transformers'
         `modeling_gpt2.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallow import devices
from tallow.core.creation import arange
from tallow.core.tensor import Tensor, wrap
from tallow.models.activations import activation_named
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.config import rename
from tallow.models.decoders.decoder import DecoderConfig, DecoderModel
from tallow.models.pretrained import check_length
from tallow.nn import init
from tallow.nn.attention import causal_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.transposed_linear import Conv1D

# Names from the configs of other models, which transformers accepts as aliases.
ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
SUMMARIES = ("last", "first", "mean", "cls_index")


@dataclass(frozen=True, kw_only=True)
class GPT2Config(DecoderConfig):
    """The sizes of a GPT-2, named as in Hugging Face's `config.json`, which `from_json` reads; as DecoderConfig.

    Attributes:
        n_inner: F; None means 4 D.
        scale_attn_weights: divide scores by √K.
        scale_attn_by_inverse_layer_idx: divide scores also by the layer's number, counted from 1.
        summary_type, summary_use_proj, summary_proj_to_labels, summary_activation, summary_first_dropout: how the head
            for choices makes a score of a text: see `GPT2SequenceSummary`.
    """

    vocab_size: int
    n_positions: int
    n_embd: int
    n_layer: int
    n_head: int
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    summary_type: str = "cls_index"
    summary_use_proj: bool = True
    summary_proj_to_labels: bool = True
    summary_activation: str | None = None
    summary_first_dropout: float = 0.1
    tie_word_embeddings: bool = True
    bos_token_id: int = 50256
    eos_token_id: tuple[int, ...] = (50256,)

    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    computed: ClassVar = {**DecoderConfig.computed, "is_decoder": (False, True)}
    # The first only scales keys before the product instead of scores; the second repeats n_positions.
    neutral: ClassVar = frozenset({"reorder_and_upcast_attn", "n_ctx"})

    def __post_init__(self) -> None:
        super().__post_init__()
        activation_named(self.activation_function)
        self.check_heads("n_embd", "n_head")
        self.require("summary_type", " or ".join(SUMMARIES), lambda kind: kind in SUMMARIES)
        if self.summary_activation is not None:
            activation_named(self.summary_activation)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        rename(entries, ALIASES)
        super().prepare(entries)

    @property
    def hidden_size(self) -> int:
        """`n_embd`, under the name of other configs."""
        return self.n_embd

    @property
    def num_hidden_layers(self) -> int:
        """`n_layer`, under the name of other configs."""
        return self.n_layer


class GPT2Attention(Module):
    """Causal self-attention; one matrix computes queries, keys and values."""

    def __init__(self, config: GPT2Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.layer = layer
        self.num_heads = config.n_head
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd, device, dtype)
        self.c_proj = Conv1D(config.n_embd, config.n_embd, device, dtype)
        self.attn_pdrop = config.attn_pdrop
        self.resid_dropout = Dropout(config.resid_pdrop)
        self.scale = math.sqrt(config.n_head / config.n_embd) if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            self.scale /= layer + 1

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        q_BHTK, k_BHSK, v_BHSK = (split_heads(part, self.num_heads) for part in self.c_attn(x_BTD).chunk(3, -1))
        lengths = masks = None
        if cache is not None:
            lengths, masks = cache.lengths(x_BTD.shape[1]), cache.masks
            k_BHSK, v_BHSK = cache.append(self.layer, k_BHSK, v_BHSK)
        dropout = self.attn_pdrop if self.training else 0.0
        mixed_BHTK = causal_attention(
            q_BHTK, k_BHSK, v_BHSK, scale=self.scale, dropout_p=dropout, lengths=lengths, masks=masks
        )
        return self.resid_dropout(self.c_proj(merge_heads(mixed_BHTK)))


class GPT2MLP(Module):
    """c_proj(activation(c_fc(x)))"""

    def __init__(self, config: GPT2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = Conv1D(inner, config.n_embd, device, dtype)
        self.c_proj = Conv1D(config.n_embd, inner, device, dtype)
        self.activation = activation_named(config.activation_function)
        self.dropout = Dropout(config.resid_pdrop)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.activation(self.c_fc(x_BTD))))


class GPT2Block(Module):
    """Attention and feed-forward, each after a norm and added to its input."""

    def __init__(self, config: GPT2Config, layer: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.attn = GPT2Attention(config, layer, device, dtype)
        self.ln_2 = LayerNorm(config.n_embd, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.mlp = GPT2MLP(config, device, dtype)

    def forward(self, x_BTD: Tensor, cache: KVCache | None) -> Tensor:
        x_BTD = x_BTD + self.attn(self.ln_1(x_BTD), cache)
        return x_BTD + self.mlp(self.ln_2(x_BTD))


class GPT2Model(DecoderModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T). A text after left padding begins at
    position 0.

    Args:    as DecoderModel
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"

    def __init__(self, config: GPT2Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.wte = Embedding(config.vocab_size, config.n_embd, device=device, dtype=dtype)
        self.wpe = Embedding(config.n_positions, config.n_embd, device=device, dtype=dtype)
        self.drop = Dropout(config.embd_pdrop)
        self.h = ModuleList(GPT2Block(config, i, device, dtype) for i in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd, config.layer_norm_epsilon, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As transformers: divide the matrices that add to the residual stream by the root of their number."""
        super().reset_parameters()
        std = self.config.initializer_range
        for name, module in self.named_modules():
            if isinstance(module, Conv1D):
                is_residual = name.endswith("c_proj")
                init.normal_(module.weight, 0.0, std / math.sqrt(2 * self.config.n_layer) if is_residual else std)

    @property
    def token_embedding(self) -> Embedding:
        return self.wte

    @property
    def context_length(self) -> int:
        return self.config.n_positions

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        start = 0 if cache is None else cache.length
        end = start + tokens_BT.shape[1]
        check_length(end, self.config.n_positions)
        if cache is not None and cache.padding is not None:
            positions_BT = np.maximum(np.arange(start, end) - cache.padding[:, None], 0)  # a row's text begins at 0
            p_BTD = self.wpe(wrap(devices.move(positions_BT, tokens_BT.device)))
        else:
            p_BTD = self.wpe(arange(start, end, device=tokens_BT.device))
        x_BTD = self.drop(self.wte(tokens_BT) + p_BTD)
        for block in self.h:
            x_BTD = block(x_BTD, cache)
        if cache is not None:
            cache.advance(tokens_BT.shape[1])
        return self.ln_f(x_BTD)


class GPT2(CausalLM):
    """A language model; Hugging Face's `GPT2LMHeadModel`.

    Args:    as DecoderModel

    Example:
        model = GPT2.from_pretrained("gpt2")
        for token in generate(model, tokens, max_tokens=100): ...
    """

    model_class = GPT2Model

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.n_layer, self.config.n_head, self.config.n_embd // self.config.n_head)


class GPT2SequenceSummary(Module):
    """activation(summary(dropout(x))) of one position, or of the mean of all: a score of a text.

    Which one `config.summary_type` says: "cls_index", the positions that a call names; or "last", "first" and "mean" of
    the second dimension, which in a batch of choices are the choices, as in transformers.
    """

    def __init__(self, config: GPT2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.kind = config.summary_type
        width = 1 if config.summary_proj_to_labels else config.n_embd
        self.summary = Linear(config.n_embd, width, device=device, dtype=dtype) if config.summary_use_proj else None
        self.activation = activation_named(config.summary_activation) if config.summary_activation else None
        self.first_dropout = Dropout(config.summary_first_dropout)

    def forward(self, x_BTD: Tensor, places: Tensor | None = None) -> Tensor:
        """Return scores (..., 1).

        Args:    places: the position to read of each text, (...); None means the last
        Shapes:  x (..., T, D)
        """
        x_BD = self.first_dropout(self._read(x_BTD, places))
        if self.summary is not None:
            x_BD = self.summary(x_BD)
        return x_BD if self.activation is None else self.activation(x_BD)

    def _read(self, x_BTD: Tensor, places: Tensor | None) -> Tensor:
        if self.kind == "mean":
            return x_BTD.mean(1)
        if self.kind != "cls_index":
            return x_BTD[:, 0 if self.kind == "first" else -1]
        if places is None:
            return x_BTD[..., -1, :]
        index = places[..., None, None].expand(*places.shape, 1, x_BTD.shape[-1])
        return x_BTD.gather(-2, index).squeeze(-2)


class DoubleHeadsLogits(NamedTuple):
    """The output of both heads.

    Shapes:  logits (B, T, V); mc_logits (B,), the score of each text
    """

    logits: Tensor
    mc_logits: Tensor


class GPT2DoubleHeadsModel(GPT2):
    """A language model that also scores texts, of which one is to be chosen.

    Args:    as DecoderModel
    """

    def __init__(self, config: GPT2Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.multiple_choice_head = GPT2SequenceSummary(config, device, dtype)
        self.reset_parameters()

    def forward(  # type: ignore[override]
        self, tokens_BT: Tensor, mc_token_ids: Tensor | None = None, cache: KVCache | None = None
    ) -> DoubleHeadsLogits:
        """Return logits of the next token, and a score of each text, by its position `mc_token_ids` (B,)."""
        hidden_BTD = self.hidden(tokens_BT, cache)
        return DoubleHeadsLogits(self.logits(hidden_BTD), self.multiple_choice_head(hidden_BTD, mc_token_ids)[..., 0])
