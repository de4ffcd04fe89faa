"""DeepSeek V2 and V3: attention over latents, from which keys and values of all heads follow, and experts in groups.

Loads Hugging Face folders of `DeepseekV2ForCausalLM` and `DeepseekV3ForCausalLM`, the models without a head, and the
heads for texts and, of V3, for tokens. Layers of V3 that predict further tokens are left out.

Letters: B batch, T positions, S positions with those in the cache, D width, H heads, R width of latents, r elements of
a head that rotate, n those that do not, v width of a head's values, N tokens, E experts, C chosen for a token, P groups
of experts.

Source:  DeepSeek-AI 2024, arXiv:2405.04434, and 2024, arXiv:2412.19437; names as in the checkpoints of transformers'
         `modeling_deepseek_v2.py` and `modeling_deepseek_v3.py`
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.creation import zeros
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.causal_lm import CacheShape
from tallow.models.config import Count, rename
from tallow.models.decoders.experts import ExpertsConfig, Router, SparseDecoderLayer, SparseLlama, SparseMLP
from tallow.models.decoders.llama import LlamaAttention, LlamaConfig, LlamaMLP, LlamaModel
from tallow.nn import functional as F
from tallow.nn.attention import causal_attention, merge_heads, split_heads
from tallow.nn.cache import KVCache
from tallow.nn.linear import Linear
from tallow.nn.normalization import RMSNorm
from tallow.nn.rotary import RotaryEmbedding
from tallow.nn.state_memory import KeysValues
from tallow.ops.joining import cat
from tallow.tape.modes import is_grad_enabled

EPS = 1e-6  # of the norms of latents, whatever that of the other norms is


@dataclass(frozen=True, kw_only=True)
class LatentConfig(ExpertsConfig):
    """The sizes of a DeepSeek, as ExpertsConfig. All heads have keys and values of their own.

    Attributes:
        kv_lora_rank: R.
        q_lora_rank: the width of the latents of queries; None means that one matrix makes the queries.
        qk_nope_head_dim, qk_rope_head_dim, v_head_dim: n, r and v. `head_dim` is r, too, as in files of transformers.
        moe_intermediate_size: the number of hidden features of an expert.
        n_shared_experts: the width of the part that all tokens use, in experts.
        first_k_dense_replace: the number of first layers without experts.
        n_group: P; None means one.
        topk_group: the number of groups whose experts a token may use; None means all.
        routed_scaling_factor: of the weights of experts.
    """

    kv_lora_rank: int = 512
    q_lora_rank: int | None = None
    qk_nope_head_dim: int = 128
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128
    moe_intermediate_size: int
    n_shared_experts: int
    first_k_dense_replace: Count
    n_group: int | None = None
    topk_group: int | None = None
    routed_scaling_factor: float = 1.0
    rope_interleaved: bool = True

    always_causal: ClassVar[bool] = True
    files_interleave: ClassVar[bool] = True
    file_names: ClassVar[Mapping[str, str]] = {"num_experts": "n_routed_experts"}
    neutral: ClassVar[frozenset[str]] = ExpertsConfig.neutral | {"aux_loss_alpha", "ep_size", "qk_head_dim", "seq_aux"}
    neutral |= {"pretraining_tp"}
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**ExpertsConfig.computed, "moe_layer_freq": (1,)}

    def __post_init__(self) -> None:
        rotated = self.qk_rope_head_dim
        self.require("head_dim", f"qk_rope_head_dim, {rotated}", lambda value: value in (None, rotated))
        object.__setattr__(self, "head_dim", rotated)
        super().__post_init__()
        self.require("qk_rope_head_dim", "an even integer", lambda value: value % 2 == 0)
        heads = self.num_attention_heads
        self.require("num_key_value_heads", f"num_attention_heads, {heads}", lambda value: value == heads)
        self.require("n_group", "a divisor of the number of experts", lambda _: self.num_experts % self.groups == 0)
        self.require("topk_group", f"at most n_group, {self.groups}", lambda value: (value or 1) <= self.groups)
        most = self.num_experts // self.groups * self.used_groups
        self.require("num_experts_per_tok", f"at most the experts of topk_group, {most}", lambda value: value <= most)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        rename(entries, {"n_routed_experts": "num_experts"})
        super().prepare(entries)

    @property
    def groups(self) -> int:
        """P"""
        return self.n_group or 1

    @property
    def used_groups(self) -> int:
        """The number of groups whose experts a token may use."""
        return self.topk_group or self.groups

    @property
    def expert_width(self) -> int:
        return self.moe_intermediate_size

    def has_experts(self, layer: int) -> bool:
        return layer >= self.first_k_dense_replace

    @property
    def input_bias(self) -> bool:
        return False

    @property
    def head_width(self) -> int:
        """v, the width of a head's result."""
        return self.v_head_dim

    @property
    def rotary_width(self) -> int:
        return self.qk_rope_head_dim

    @property
    def key_width(self) -> int:
        """n + r"""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def layer_shapes(self) -> tuple[KeysValues, ...]:
        """Latents in the place of keys, and the elements of keys that rotate in the place of values."""
        return (KeysValues(1, self.kv_lora_rank, self.qk_rope_head_dim),) * self.num_hidden_layers

    @property
    def score_scale(self) -> float:
        """The factor of the scores: that of "yarn", too.  Source: arXiv:2309.00071, section 3.4"""
        scaling = self.rope_scaling or {}
        of_all = scaling.get("mscale_all_dim") or 0.0
        factor = max(scaling.get("factor") or 1.0, 1.0)
        return float((0.1 * of_all * math.log(factor) + 1) ** 2 / math.sqrt(self.key_width))


class LatentLinear(Linear):
    """A linear layer from latents to keys and values that stays in floats when a model is quantised: attention over
    latents reads parts of its weight."""


class LatentAttention(LlamaAttention):
    """Attention whose keys and values are linear in latents, of which there is one for each position.

    A cache has the latents. For a few queries of many positions the linear layer is applied to queries and results
    instead of all latents, which gives the same: q (W c) = (q W) c.
    """

    def __init__(self, config: LatentConfig, layer: int, device: Any, dtype: Any) -> None:
        super().__init__(config, layer, device, dtype)
        self.rank, self.value_width = config.kv_lora_rank, config.v_head_dim
        self.plain_width, self.rotary_width = config.qk_nope_head_dim, config.qk_rope_head_dim
        self.scale = config.score_scale

    def add_projections(self, config: Any, device: Any, dtype: Any) -> None:
        width, rank, bias = config.hidden_size, config.kv_lora_rank, config.attention_bias
        queries = self.num_heads * config.key_width
        if config.q_lora_rank is None:
            self.q_proj = Linear(width, queries, False, device, dtype)
        else:
            self.q_a_proj = Linear(width, config.q_lora_rank, bias, device, dtype)
            self.q_a_layernorm = RMSNorm(config.q_lora_rank, EPS, device=device, dtype=dtype)
            self.q_b_proj = Linear(config.q_lora_rank, queries, False, device, dtype)
        self.kv_a_proj_with_mqa = Linear(width, rank + config.qk_rope_head_dim, bias, device, dtype)
        self.kv_a_layernorm = RMSNorm(rank, EPS, device=device, dtype=dtype)
        parts = self.num_heads * (config.qk_nope_head_dim + config.v_head_dim)
        self.kv_b_proj = LatentLinear(rank, parts, False, device, dtype)

    def forward(self, x_BTD: Tensor, rotary: RotaryEmbedding, cache: KVCache | None) -> Tensor:
        start, padding = (0, None) if cache is None else (cache.length, cache.padding)
        q_BHTK = split_heads(self.queries(x_BTD), self.num_heads)
        q_BHTn, q_BHTr = q_BHTK.split([self.plain_width, self.rotary_width], -1)
        c_BTR, k_BTr = self.kv_a_proj_with_mqa(x_BTD).split([self.rank, self.rotary_width], -1)
        q_BHTr, k_B1Sr = self.rotated(q_BHTr, k_BTr.unsqueeze(1), rotary, start, padding)
        c_B1SR = self.kv_a_layernorm(c_BTR).unsqueeze(1)
        lengths = masks = None
        if cache is not None:
            lengths, masks = cache.lengths(x_BTD.shape[1]), cache.masks
            c_B1SR, k_B1Sr = cache.append(self.layer, c_B1SR, k_B1Sr)
        options: dict[str, Any] = {
            "scale": self.scale,
            "dropout_p": self.dropout_p if self.training else 0.0,
            "lengths": lengths,
            "masks": masks,
        }
        if self._reads_latents(x_BTD.shape[1], c_B1SR.shape[2]):
            weight_HFR = self.kv_b_proj.weight.reshape(self.num_heads, -1, self.rank)
            to_keys, to_values = weight_HFR.split([self.plain_width, self.value_width], 1)
            q = apply(cat, [q_BHTn @ to_keys, q_BHTr], -1)
            mixed = causal_attention(q, apply(cat, [c_B1SR, k_B1Sr], -1), c_B1SR, **options)
            return self.project(merge_heads(mixed @ to_values.mT))
        each_BHSF = split_heads(self.kv_b_proj(c_B1SR.squeeze(1)), self.num_heads)
        k_BHSn, v_BHSv = each_BHSF.split([self.plain_width, self.value_width], -1)
        q, k = (
            apply(cat, [plain, rotating.expand(-1, self.num_heads, -1, -1)], -1)
            for plain, rotating in ((q_BHTn, q_BHTr), (k_BHSn, k_B1Sr))
        )
        return self.project(merge_heads(causal_attention(q, k, v_BHSv, **options)))

    def queries(self, x_BTD: Tensor) -> Tensor:
        """Return the queries of all heads (B, T, H (n + r))."""
        if hasattr(self, "q_proj"):
            return self.q_proj(x_BTD)
        return self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x_BTD)))

    def _reads_latents(self, queries: int, keys: int) -> bool:
        """Return whether queries and results are multiplied instead of latents: where that is less work."""
        if queries == keys or is_grad_enabled() or type(self.kv_b_proj) is not LatentLinear:
            return False
        if self.kv_b_proj.has_hooks():
            return False
        width = self.plain_width + self.value_width
        return self.rank * (queries * width + 2 * queries * keys) < width * (self.rank * keys + queries * keys)


class GroupRouter(Router):
    """Chooses the experts of the largest weights in the groups of the largest scores."""

    def __init__(self, config: LatentConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.groups, self.used_groups = config.groups, config.used_groups
        self.factor = config.routed_scaling_factor

    def scores(self, x_ND: Tensor) -> Tensor:
        """Return the scores of all experts (N, E), computed in float32 also from halves."""
        return F.linear(x_ND.float(), self.weight.float())

    def choose(self, scores_NE: Tensor, bias_E: Tensor | None) -> tuple[Tensor, Tensor]:
        if bias_E is not None:
            raise ArgumentError("a router of groups takes no bias", hint="leave expert_bias of the experts None")
        return self.weighed(scores_NE)

    @abstractmethod
    def weighed(self, scores_NE: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights and the numbers of the chosen experts, both (N, C)."""

    @abstractmethod
    def group_scores(self, preferences_NPe: Tensor) -> Tensor:
        """Return the scores of groups (N, P), from what their experts are chosen by."""

    def chosen(self, preferences_NE: Tensor) -> Tensor:
        """Return the numbers of the chosen experts (N, C), from what they are chosen by."""
        if self.used_groups < self.groups:
            each_NPe = preferences_NE.unflatten(-1, (self.groups, -1))
            _, best_Ng = self.group_scores(each_NPe).topk(self.used_groups)
            none_NP = each_NPe.new_zeros(best_Ng.shape[0], self.groups)
            used_NP = none_NP.scatter(1, best_Ng, each_NPe.new_ones(best_Ng.shape))
            preferences_NE = each_NPe.masked_fill(used_NP.unsqueeze(-1) == 0, -math.inf).flatten(1)
        return preferences_NE.topk(self.count)[1]


class DeepseekV2Router(GroupRouter):
    """Weighs experts by softmax, and groups by their best expert."""

    def group_scores(self, preferences_NPe: Tensor) -> Tensor:
        return preferences_NPe.amax(-1)

    def weighed(self, scores_NE: Tensor) -> tuple[Tensor, Tensor]:
        weights_NE = F.softmax(scores_NE, -1)
        chosen_NC = self.chosen(weights_NE)
        return weights_NE.gather(-1, chosen_NC) * self.factor, chosen_NC


class DeepseekV3Router(GroupRouter):
    """Weighs experts by sigmoids. A bias for each expert, which is not part of the weights, is added to choose by; the
    two best experts of a group are its score."""

    def __init__(self, config: LatentConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.register_buffer("e_score_correction_bias", zeros(config.num_experts, device=device))

    def group_scores(self, preferences_NPe: Tensor) -> Tensor:
        return preferences_NPe.topk(2)[0].sum(-1)

    def weighed(self, scores_NE: Tensor) -> tuple[Tensor, Tensor]:
        weights_NE = F.sigmoid(scores_NE)
        chosen_NC = self.chosen(weights_NE + self.e_score_correction_bias)
        weights_NC = weights_NE.gather(-1, chosen_NC)
        if self.normalized:
            weights_NC = weights_NC / (weights_NC.sum(-1, keepdim=True) + 1e-20)
        return weights_NC * self.factor, chosen_NC


class DeepseekV2MLP(SparseMLP):
    """Experts, and a part that all tokens use."""

    router_class: ClassVar[type[Router]] = DeepseekV2Router

    def __init__(self, config: LatentConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        width = config.n_shared_experts * config.moe_intermediate_size
        self.shared_experts = LlamaMLP(config, device, dtype, width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return super().forward(x_BTD) + self.shared_experts(x_BTD)


class DeepseekV3MLP(DeepseekV2MLP):
    """Experts that V3's router chooses, and a part that all tokens use."""

    router_class = DeepseekV3Router


class DeepseekV2DecoderLayer(SparseDecoderLayer):
    """Attention over latents, and experts except in the first layers."""

    attention_class = LatentAttention
    sparse_class: ClassVar[type[SparseMLP]] = DeepseekV2MLP


class DeepseekV3DecoderLayer(DeepseekV2DecoderLayer):
    """A layer with V3's router."""

    sparse_class = DeepseekV3MLP


@dataclass(frozen=True, kw_only=True)
class DeepseekV2Config(LatentConfig):
    """The sizes of a DeepSeek V2, as LatentConfig.

    Attributes:
        topk_method: "group_limited_greedy" if the groups limit the choice of experts, "greedy" if they do not.
    """

    num_experts: int = 64
    moe_intermediate_size: int = 1407
    n_shared_experts: int = 2
    first_k_dense_replace: Count = 0
    topk_method: str = "greedy"

    model_types: ClassVar[tuple[str, ...]] = ("deepseek_v2",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {**LatentConfig.computed, "scoring_func": ("softmax",)}

    def __post_init__(self) -> None:
        methods = ("greedy", "group_limited_greedy")
        self.require("topk_method", " or ".join(map(repr, methods)), lambda value: value in methods)
        super().__post_init__()
        for name in ("mlp_bias", "norm_topk_prob"):
            self.require(name, "False", lambda value: value is False)

    @property
    def used_groups(self) -> int:
        return self.groups if self.topk_method == "greedy" else super().used_groups


@dataclass(frozen=True, kw_only=True)
class DeepseekV3Config(LatentConfig):
    """The sizes of a DeepSeek V3, as LatentConfig.

    Attributes:
        num_nextn_predict_layers: the number of layers in a checkpoint, after those of the model, that predict further
            tokens.
    """

    max_position_embeddings: int = 4096
    num_experts: int = 256
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = True
    moe_intermediate_size: int = 2048
    n_shared_experts: int = 1
    first_k_dense_replace: Count = 3
    n_group: int | None = 8
    topk_group: int | None = 4
    routed_scaling_factor: float = 2.5
    num_nextn_predict_layers: Count = 1
    bos_token_id: int = 0
    eos_token_id: tuple[int, ...] = (1,)

    model_types: ClassVar[tuple[str, ...]] = ("deepseek_v3",)
    unread: ClassVar[frozenset[str]] = LatentConfig.unread | {"mlp_bias"}
    in_float32: ClassVar[tuple[str, ...]] = ("e_score_correction_bias",)
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **LatentConfig.computed,
        "rope_interleave": (True,),
        "scoring_func": ("sigmoid",),
        "topk_method": ("noaux_tc",),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        suffices = self.used_groups == self.groups or self.num_experts > self.groups
        self.require("n_group", "groups of two or more experts", lambda _: suffices)

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        rename(entries, {"num_mtp_layers": "num_nextn_predict_layers"})

    @property
    def further_layers(self) -> int:
        return self.num_nextn_predict_layers


class DeepseekV2Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class: ClassVar[type[LlamaConfig]] = DeepseekV2Config
    layer_class: ClassVar[type[DeepseekV2DecoderLayer]] = DeepseekV2DecoderLayer


class DeepseekV2(SparseLlama):
    """A language model; Hugging Face's `DeepseekV2ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class: ClassVar[type[LlamaModel]] = DeepseekV2Model

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(self.config.num_hidden_layers, 1, self.config.kv_lora_rank)

    @property
    def windows(self) -> tuple[int | None, ...]:
        return (None,) * self.config.num_hidden_layers


class DeepseekV3Model(LlamaModel):
    """The transformer without a head: hidden states (B, T, D) of tokens (B, T).  Args: as DecoderModel"""

    config_class = DeepseekV3Config
    layer_class = DeepseekV3DecoderLayer


class DeepseekV3(DeepseekV2):
    """A language model; Hugging Face's `DeepseekV3ForCausalLM`.

    Args:    as DecoderModel
    """

    model_class = DeepseekV3Model
