"""Names of tensors and of metadata in GGUF files, for each architecture of tallow, to read and to write them.

    names = NAMES["Llama"]
    names.to_gguf("model.layers.3.self_attn.q_proj.weight")        # "blk.3.attn_q.weight"
    names.from_gguf("blk.3.attn_q.weight")                         # the other direction
    names.fields["hidden_size"]                                    # "embedding_length", below "llama."

Source:  llama.cpp's `gguf-py/gguf/constants.py` for the names; its converters from Hugging Face, `conversion/*.py`, for
         the values that a file stores in another form than the checkpoint
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

LAYER = "blk"  # prefix of the names of a layer's tensors, before its number
FREQUENCY_DIVISORS = "rope_freqs.weight"  # divisors of the rotary frequencies, for Llama 3
# "yarn": the entries of a config that files have, and those of files that configs do not have, with their defaults.
YARN_BETAS = {"beta_fast": "rope.scaling.yarn_beta_fast", "beta_slow": "rope.scaling.yarn_beta_slow"}
YARN_ASSUMED = {"attn_factor": 1.0, "yarn_attn_factor": 1.0, "yarn_ext_factor": 1.0, "yarn_log_multiplier": 0.0}
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"  # the same for Phi-3's "longrope"
SETTINGS = (FREQUENCY_DIVISORS, LONG_FACTORS, SHORT_FACTORS)  # tensors that are settings of the config, not weights
# Poolings by number, as `pooling_type` stores them, with their names in tallow.models.encoders.sentence.
POOLINGS = {1: "mean", 2: "cls", 3: "lasttoken"}
CLASSIFIER = 4  # the `pooling_type` of a classifier of texts


@dataclass(frozen=True, kw_only=True)
class GGUFNames:
    """The names of one model.

    Attributes:
        architecture: the value of `general.architecture`, and the prefix of the keys in `fields`.
        layers: the module that holds the layers.
        outer: module outside of the layers -> name in the file, without ".weight" or ".bias".
        inner: module of a layer -> name in the file after the layer's number.
        fields: field of the config -> key of the metadata, without the architecture.
        norm_offset: the number that a file adds to the weights of norms.
        transposed: modules of a layer whose weights a file stores transposed, as a Linear's.
        grouped: modules of a layer that compute queries, keys and values, ordered by groups of heads. A file orders
            the rows by kind: see `rows_by_group`.
        interleaved: modules of a layer whose rows a file orders so that rotary pairs are neighbours.
        vectors: modules of a layer with a matrix of one row, which a file stores as a vector.
        parameters: parameter of a layer that is no weight or bias -> name in the file after the layer's number.
        plain_norms: modules of a layer to which `norm_offset` does not apply.
        channels: modules of a layer with a convolution of each channel, (C, 1, W), which a file stores as (C, W).
        joined: modules of a layer that the model has in parts, whose rows a file stores one after the other.
        spread: parameters of a layer with a vector, which a file stores as a matrix.
        decays: parameters of a layer with the logarithm of a decay, of which a file stores minus the power.

    In names of modules, "*" stands for the number of an expert: a file stores the matrices of all experts as one tensor
    (E, out, in).
    """

    architecture: str
    layers: str
    outer: Mapping[str, str]
    inner: Mapping[str, str]
    fields: Mapping[str, str]
    norm_offset: float = 0.0
    transposed: frozenset[str] = frozenset()
    grouped: frozenset[str] = frozenset()
    interleaved: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    parameters: Mapping[str, str] = field(default_factory=dict)
    plain_norms: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    decays: frozenset[str] = frozenset()
    joined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spread: frozenset[str] = frozenset()
    _inner_modules: Mapping[str, str] = field(init=False, repr=False)
    _parameters: Mapping[str, str] = field(init=False, repr=False)
    _outer_modules: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inner_modules", {theirs: ours for ours, theirs in self.inner.items()})
        object.__setattr__(self, "_parameters", {theirs: ours for ours, theirs in self.parameters.items()})
        object.__setattr__(self, "_outer_modules", {theirs: ours for ours, theirs in self.outer.items()})

    def to_gguf(self, name: str) -> str | None:
        """Return the name in a file of a tensor of the model's state dict; None if files do not have it."""
        layer, module, kind = self.parts(name)
        if layer is not None and (theirs := self.parameters.get(f"{module}.{kind}")) is not None:
            return f"{LAYER}.{layer}.{theirs}"
        theirs = (self.outer if layer is None else self.inner).get(module)
        if theirs is None:
            return None
        return f"{theirs}.{kind}" if layer is None else f"{LAYER}.{layer}.{theirs}.{kind}"

    def from_gguf(self, name: str) -> str | None:
        """Return the name in the model's state dict of a tensor in a file; None if the model does not have it."""
        module, _, kind = name.rpartition(".")
        if module in self._outer_modules:
            return f"{self._outer_modules[module]}.{kind}"
        prefix, _, rest = module.partition(".")
        layer, _, inner = rest.partition(".")
        whole = f"{inner}.{kind}".removeprefix(".")
        if prefix == LAYER and whole in self._parameters:
            return f"{self.layers}.{layer}.{self._parameters[whole]}"
        if prefix == LAYER and inner in self._inner_modules:
            return f"{self.layers}.{layer}.{self._inner_modules[inner]}.{kind}"
        return None

    def parts(self, name: str) -> tuple[str | None, str, str]:
        """Split a name of the state dict: the layer's number, None outside of the layers; the module, with "*" for the
        number of an expert; "weight" or "bias"."""
        module, _, kind = name.rpartition(".")
        if not module.startswith(f"{self.layers}."):
            return None, module, kind
        number, _, inner = module.removeprefix(f"{self.layers}.").partition(".")
        return number, _EXPERT.sub(".experts.*.", inner), kind


_EXPERT = re.compile(r"\.experts\.\d+\.")


def of_experts(name: str, count: int) -> list[str]:
    """Return the names of the state dict that "*" in a name stands for; the name itself if it has none."""
    return [name.replace("*", str(i)) for i in range(count)] if "*" in name else [name]


def rows_by_group(heads: int, groups: int, width: int) -> npt.NDArray[np.int64]:
    """Return the row in a file of each row of Falcon's fused projection.

    The model orders rows by groups: the query heads of a group, its key head, its value head. Files have all query
    heads, then all key heads, then all value heads. `argsort` of the result converts in the other direction.

    Args:  heads, groups: numbers of query heads and of key/value heads;  width: rows of a head

    Shapes:  -> ((heads + 2 groups) · width,)
    """
    each = heads // groups
    queries = np.arange(heads).reshape(groups, each)
    keys = heads + np.arange(groups)[:, None]
    order = np.concatenate([queries, keys, keys + groups], axis=1).reshape(-1)
    return (order[:, None] * width + np.arange(width)).reshape(-1)


LLAMA_OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LLAMA_INNER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
LLAMA_FIELDS = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "sliding_window": "attention.sliding_window",
    "max_position_embeddings": "context_length",
    "rope_theta": "rope.freq_base",
}


def llama_names(architecture: str, inner: Mapping[str, str], **options: object) -> GGUFNames:
    """Return the names of a model of Llama's design.

    Args:
        inner: modules of a layer.
        options: arguments of GGUFNames that differ from Llama's
    """
    settings = {"fields": LLAMA_FIELDS, "outer": LLAMA_OUTER} | options
    return GGUFNames(architecture=architecture, layers="model.layers", inner=inner, **settings)  # type: ignore[arg-type]


_ATTENTION = {ours: theirs for ours, theirs in LLAMA_INNER.items() if not ours.startswith("mlp.")}
EXPERT_FIELDS = {"num_experts": "expert_count", "num_experts_per_tok": "expert_used_count"}
EXPERT_WIDTH = {"moe_intermediate_size": "expert_feed_forward_length"}
SHARED_WIDTH = {"shared_expert_intermediate_size": "expert_shared_feed_forward_length"}


def _experts(part: str, gate: str, up: str, down: str) -> dict[str, str]:
    """Return the names of the inner modules of a layer with experts, from those of its feed-forward part."""
    parts = {gate: "ffn_gate_exps", up: "ffn_up_exps", down: "ffn_down_exps"}
    experts = {f"{part}.experts.*.{ours}": theirs for ours, theirs in parts.items()}
    return {**_ATTENTION, f"{part}.gate": "ffn_gate_inp", **experts}


SPARSE = _experts("mlp", "gate_proj", "up_proj", "down_proj")
SHARED = {
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
ROTATED = frozenset({"self_attn.q_proj", "self_attn.k_proj"})
HEAD_NORMS = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
_FOUR_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_SOFT_CAPS = {
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
PHI3 = {
    "input_layernorm": "attn_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
PHI3_FIELDS = {"original_max_position_embeddings": "rope.scaling.original_context_length"}


def _falcon(norms: Mapping[str, str]) -> GGUFNames:
    return GGUFNames(
        architecture="falcon",
        layers="transformer.h",
        outer={
            "transformer.word_embeddings": "token_embd",
            "transformer.ln_f": "output_norm",
            "lm_head": "output",
        },
        inner={
            **norms,
            "self_attention.query_key_value": "attn_qkv",
            "self_attention.dense": "attn_output",
            "mlp.dense_h_to_4h": "ffn_up",
            "mlp.dense_4h_to_h": "ffn_down",
        },
        fields={
            "num_hidden_layers": "block_count",
            "hidden_size": "embedding_length",
            "ffn_hidden_size": "feed_forward_length",
            "num_attention_heads": "attention.head_count",
            "num_kv_heads": "attention.head_count_kv",
            "layer_norm_epsilon": "attention.layer_norm_epsilon",
            "max_position_embeddings": "context_length",
            "rope_theta": "rope.freq_base",
        },
        grouped=frozenset({"self_attention.query_key_value"}),
    )


_GPT2 = GGUFNames(
    architecture="gpt2",
    layers="transformer.h",
    outer={
        "transformer.wte": "token_embd",
        "transformer.wpe": "position_embd",
        "transformer.ln_f": "output_norm",
        "lm_head": "output",
    },
    inner={
        "ln_1": "attn_norm",
        "attn.c_attn": "attn_qkv",
        "attn.c_proj": "attn_output",
        "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down",
    },
    fields={
        "n_layer": "block_count",
        "n_embd": "embedding_length",
        "n_inner": "feed_forward_length",
        "n_head": "attention.head_count",
        "layer_norm_epsilon": "attention.layer_norm_epsilon",
        "n_positions": "context_length",
    },
    transposed=frozenset({"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}),
)
_BERT_OUTER = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
_BERT_INNER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_BERT_FIELDS = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "layer_norm_eps": "attention.layer_norm_epsilon",
    "max_position_embeddings": "context_length",
}
_BERT_HEAD = {"bert.pooler.dense": "cls", "classifier": "cls.output"}
_DISTILBERT = GGUFNames(
    architecture="bert",
    layers="transformer.layer",
    outer={ours: theirs for ours, theirs in _BERT_OUTER.items() if theirs != "token_types"},
    inner={
        "attention.q_lin": "attn_q",
        "attention.k_lin": "attn_k",
        "attention.v_lin": "attn_v",
        "attention.out_lin": "attn_output",
        "sa_layer_norm": "attn_output_norm",
        "ffn.lin1": "ffn_up",
        "ffn.lin2": "ffn_down",
        "output_layer_norm": "layer_output_norm",
    },
    fields={
        "n_layers": "block_count",
        "dim": "embedding_length",
        "hidden_dim": "feed_forward_length",
        "n_heads": "attention.head_count",
        "max_position_embeddings": "context_length",
    },
)

# By class in tallow.models, except "FalconTwoNorms": a Falcon with separate norms for attention and feed-forward. A
# RoBERTa is stored as a BERT, whose positions begin at 0: without the first `pad_token_id + 1` rows of their table.
NAMES: dict[str, GGUFNames] = {
    "Llama": llama_names("llama", LLAMA_INNER, interleaved=ROTATED),
    "Mistral": llama_names("llama", LLAMA_INNER, interleaved=ROTATED),
    "Qwen2": llama_names("qwen2", LLAMA_INNER),
    "Qwen3": llama_names("qwen3", LLAMA_INNER | HEAD_NORMS),
    "Mixtral": llama_names(
        "llama",
        _experts("block_sparse_moe", "w1", "w3", "w2"),
        fields=LLAMA_FIELDS | EXPERT_FIELDS,
        interleaved=ROTATED,
    ),
    "Olmoe": llama_names("olmoe", SPARSE | HEAD_NORMS, fields=LLAMA_FIELDS | EXPERT_FIELDS),
    "Qwen2Moe": llama_names(
        "qwen2moe",
        SPARSE | SHARED,
        fields=LLAMA_FIELDS | EXPERT_FIELDS | EXPERT_WIDTH | SHARED_WIDTH,
        vectors=frozenset({"mlp.shared_expert_gate"}),
    ),
    "Qwen3Moe": llama_names("qwen3moe", SPARSE | HEAD_NORMS, fields=LLAMA_FIELDS | EXPERT_FIELDS | EXPERT_WIDTH),
    "Gemma": llama_names("gemma", LLAMA_INNER, norm_offset=1.0),
    "Gemma2": llama_names("gemma2", LLAMA_INNER | _FOUR_NORMS, fields=LLAMA_FIELDS | _SOFT_CAPS, norm_offset=1.0),
    "Gemma3": llama_names(
        "gemma3",
        LLAMA_INNER | _FOUR_NORMS | HEAD_NORMS,
        fields=LLAMA_FIELDS | {"final_logit_softcapping": "final_logit_softcapping"},
        norm_offset=1.0,
    ),
    "Phi3": llama_names("phi3", PHI3, fields=LLAMA_FIELDS | PHI3_FIELDS),
    "Falcon": _falcon({"input_layernorm": "attn_norm"}),
    "FalconTwoNorms": _falcon({"ln_mlp": "attn_norm", "ln_attn": "attn_norm_2"}),
    "GPT2": _GPT2,
    "BertModel": GGUFNames(
        architecture="bert", layers="encoder.layer", outer=_BERT_OUTER, inner=_BERT_INNER, fields=_BERT_FIELDS
    ),
    "DistilBertModel": _DISTILBERT,
}
NAMES["RobertaModel"] = NAMES["BertModel"]
NAMES["NomicBertModel"] = GGUFNames(
    architecture="nomic-bert",
    layers="layers",
    outer={ours: theirs for ours, theirs in _BERT_OUTER.items() if theirs != "position_embd"},
    inner={
        "self_attn.qkv_proj": "attn_qkv",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "attn_output_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "post_mlp_layernorm": "layer_output_norm",
    },
    fields=_BERT_FIELDS | {"rope_theta": "rope.freq_base"},
    joined={"self_attn.qkv_proj": tuple(f"self_attn.{part}_proj" for part in "qkv")},
)
NAMES["BertForSequenceClassification"] = GGUFNames(
    architecture="bert",
    layers="bert.encoder.layer",
    outer={f"bert.{ours}": theirs for ours, theirs in _BERT_OUTER.items()} | _BERT_HEAD,
    inner=_BERT_INNER,
    fields=_BERT_FIELDS,
)
