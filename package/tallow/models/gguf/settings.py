"""The metadata of a model in a GGUF file: the counterpart of config.py.

Files have no entries for some settings, which every reader assumes. A model with other values is refused.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the entries that llama.cpp reads, and the values
         that it assumes, from its `src/llama-model.cpp`; what its converters write, `conversion/*.py`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.decoders.falcon import Falcon, FalconConfig
from tallow.models.decoders.gemma import Gemma
from tallow.models.decoders.gemma2 import Gemma2
from tallow.models.decoders.gemma3 import Gemma3
from tallow.models.decoders.gpt2 import GPT2
from tallow.models.decoders.llama import Llama
from tallow.models.decoders.mistral import Mistral
from tallow.models.decoders.mixtral import Mixtral
from tallow.models.decoders.olmoe import Olmoe
from tallow.models.decoders.phi3 import Phi3
from tallow.models.decoders.qwen import Qwen2, Qwen3
from tallow.models.decoders.qwen_moe import Qwen2Moe, Qwen3Moe
from tallow.models.encoders.bert import BertForSequenceClassification, BertModel
from tallow.models.encoders.distilbert import EPS, DistilBertModel
from tallow.models.encoders.roberta import RobertaModel
from tallow.models.gguf.config import LARGEST, NORMALIZED
from tallow.models.gguf.names import (
    CLASSIFIER,
    FREQUENCY_DIVISORS,
    LONG_FACTORS,
    NAMES,
    SHORT_FACTORS,
    YARN_BETAS,
    GGUFNames,
)
from tallow.models.pretrained import PretrainedModel
from tallow.nn.rope_scaling import ORIGINAL, amplitude, frequencies

FLOATS = ("epsilon", "freq_base", "softcapping")  # ends of the keys whose values are floats
Values = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """The settings of a model in a file.

    Attributes:
        values: entries of the metadata, without the architecture's name; None means that there is no entry.
        vectors: settings that a file stores as tensors, by name.
        general: entries outside of the architecture.
    """

    values: Values
    vectors: Mapping[str, Array] = field(default_factory=dict)
    general: Mapping[str, Any] = field(default_factory=dict)


def names_of(model: PretrainedModel) -> GGUFNames:
    """Return the names of a model's tensors.  Raises: ArgumentError for a model that is not written"""
    if type(model) not in _WRITERS:
        raise ArgumentError(
            f"tallow writes no GGUF files of a {type(model).__name__}",
            hint=f"it writes models of these classes: {', '.join(kind.__name__ for kind in _WRITERS)}",
        )
    if isinstance(model, Falcon) and model.config.has_two_norms:
        return NAMES["FalconTwoNorms"]
    return NAMES[type(model).__name__]


def settings_of(model: PretrainedModel) -> Settings:
    """Return the settings of a model.  Raises: ArgumentError for a model that GGUF files cannot describe"""
    names = names_of(model)
    values = {key: _as_declared(key, getattr(model.config, name)) for name, key in names.fields.items()}
    return _WRITERS[type(model)](model, values)


def _as_declared(key: str, value: Any) -> Any:
    """Return a value with the type of its entry, which readers check: a config may have rope_theta=10000."""
    return float(value) if key.endswith(FLOATS) and value is not None else value


def _require(model: PretrainedModel, **settings: Any) -> None:
    """Raise ArgumentError unless the config has these values, which readers assume."""
    for name, expected in settings.items():
        value = getattr(model.config, name)
        if value != expected:
            raise ArgumentError(
                f"GGUF has no entry for {name}={value!r} of a {type(model).__name__}; readers assume {expected!r}"
            )


def _require_activation(model: PretrainedModel, name: str, expected: str) -> None:
    value = getattr(model.config, name)
    if activation_named(value) is not activation_named(expected):
        raise ArgumentError(f"GGUF has no entry for {name}={value!r} of a {type(model).__name__}")


# ------------------------------------------------------------------------------------------------- Llama and its likes


def _llama(model: Any, values: Values) -> Settings:
    """Llama and Mistral. Their files may have divisors of the rotary frequencies."""
    _require_activation(model, "hidden_act", "silu")
    config = model.config
    scaling = config.rope_scaling or {}
    if _kind(scaling) not in ("llama3", "divisors"):
        return Settings(_heads(model, values) | _scaling(model))
    width, base = config.rotary_width, config.rope_theta
    scaled = frequencies(width, base, scaling, config.max_position_embeddings)
    divisors = (frequencies(width, base) / scaled).astype(np.float32)
    return Settings(_heads(model, values), {FREQUENCY_DIVISORS: divisors})


def _qwen(model: Any, values: Values) -> Settings:
    _require_activation(model, "hidden_act", "silu")
    if any(window is not None for window in model.windows):
        raise ArgumentError(f"GGUF has no entry for the sliding window of a {type(model).__name__}")
    return Settings(_heads(model, values) | {"attention.sliding_window": None} | _scaling(model))


def _mixtral(model: Any, values: Values) -> Settings:
    _require_experts(model)
    return _llama(model, values)


def _olmoe(model: Any, values: Values) -> Settings:
    _require(model, clip_qkv=None)
    _require_experts(model)
    return _qwen(model, values)


def _qwen_moe(model: Any, values: Values) -> Settings:
    _require(model, decoder_sparse_step=1, mlp_only_layers=())
    _require_experts(model)
    return _qwen(model, values)


def _require_experts(model: PretrainedModel) -> None:
    _require(model, norm_topk_prob=type(model).__name__ in NORMALIZED)


def _gemma(model: Any, values: Values) -> Settings:
    _require(model, attention_bias=False, tie_word_embeddings=True)
    _require_activation(model, "activation", "gelu_pytorch_tanh")
    return Settings(_heads(model, values) | _scaling(model))


def _gemma2(model: Any, values: Values) -> Settings:
    """Gemma 2, whose scale of the scores, and whose layers with a sliding window, readers derive from the sizes."""
    config = model.config
    _require_scale(model)
    windows = [config.sliding_window if layer % 2 == 0 else None for layer in range(config.num_hidden_layers)]
    if None in (config.attn_logit_softcapping, config.final_logit_softcapping, config.sliding_window):
        raise ArgumentError("GGUF has no entry for a Gemma2 without a soft cap or without a sliding window")
    if list(model.windows) != windows:
        raise ArgumentError("GGUF has no entry for the layer_types of a Gemma2; readers assume every other layer")
    return _gemma(model, values)


def _gemma3(model: Any, values: Values) -> Settings:
    """Gemma 3. Readers know its windows and their rotary angles without entries."""
    config = model.config
    _require_scale(model)
    if _kind(config.rope_local_scaling or {}) != "default":
        raise ArgumentError("GGUF has no entry for rope_local_scaling of a Gemma3")
    windows = [config.sliding_window if config.slides(layer) else None for layer in range(config.num_hidden_layers)]
    if config.sliding_window is None or list(model.windows) != windows:
        raise ArgumentError("GGUF has no entry for the layer_types of a Gemma3; readers assume five of six layers")
    assumed = {field.name: field.default for field in fields(config)}
    _require(model, **{name: assumed[name] for name in ("rope_local_base_freq", "sliding_window_pattern")})
    return _gemma(model, values)


def _require_scale(model: PretrainedModel) -> None:
    """Raise ArgumentError unless the scale of the scores is what readers derive from the sizes."""
    config = model.config
    is_largest = config.num_hidden_layers == LARGEST[type(model).__name__]
    scale = config.hidden_size // config.num_attention_heads if is_largest else config.head_width
    _require(model, query_pre_attn_scalar=scale)


def _phi3(model: Any, values: Values) -> Settings:
    """Phi-3. Its "longrope" has two vectors of factors."""
    _require_activation(model, "hidden_act", "silu")
    config = model.config
    values = _heads(model, values) | {"attention.sliding_window": config.sliding_window or 0}
    scaling = config.rope_scaling or {}
    if _kind(scaling) != "longrope":
        return Settings(values | _scaling(model))
    values |= {
        "rope.scaling.attn_factor": amplitude(scaling, config.max_position_embeddings),
        "rope.scaling.original_context_length": scaling[ORIGINAL],
    }
    factors = {LONG_FACTORS: "long_factor", SHORT_FACTORS: "short_factor"}
    return Settings(values, {name: np.asarray(scaling[entry], np.float32) for name, entry in factors.items()})


def _heads(model: Any, values: Values) -> Values:
    """Return the values with those of the heads.  Raises: ArgumentError for biases of the feed-forward parts"""
    config = model.config
    if config.mlp_bias:
        raise ArgumentError("GGUF has no names for mlp_bias")
    return values | {
        "attention.key_length": config.head_width,
        "attention.value_length": config.head_width,
        "rope.dimension_count": config.rotary_width,
        "vocab_size": config.vocab_size,
    }


def _kind(scaling: Mapping[str, Any]) -> Any:
    return scaling.get("rope_type", scaling.get("type", "default"))


def _scaling(model: Any) -> Values:
    """Return the scaling of rotary angles.  Raises: ArgumentError for one that files do not have"""
    scaling = model.config.rope_scaling or {}
    kind = _kind(scaling)
    if kind == "linear":
        return {"rope.scaling.type": "linear", "rope.scaling.factor": float(scaling["factor"])}
    if kind == "yarn":
        return _yarn(scaling, model.config.max_position_embeddings)
    if kind != "default":
        raise ArgumentError(
            f"GGUF files of the architecture {names_of(model).architecture} have no rope_scaling of type {kind!r}"
        )
    return {}


def _yarn(scaling: Mapping[str, Any], context: int) -> Values:
    """Return the entries of "yarn".  Raises: ArgumentError for a setting that files do not have"""
    plain = {name: scaling[name] for name in ("rope_type", "type", "factor") if name in scaling}
    if amplitude(scaling, context) != amplitude(plain, context):
        raise ArgumentError(
            f"GGUF files have no entry for the attention factor {amplitude(scaling, context)} of 'yarn'"
        )
    if not scaling.get("truncate", True):
        raise ArgumentError("GGUF files have no entry for truncate=False of 'yarn'")
    return {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": float(scaling["factor"]),
        "rope.scaling.original_context_length": scaling.get(ORIGINAL) or context,
        **{key: float(scaling[name]) for name, key in YARN_BETAS.items() if scaling.get(name) is not None},
    }


# ------------------------------------------------------------------------------------------------------- other decoders


def _falcon(model: Any, values: Values) -> Settings:
    _require(model, alibi=False, parallel_attn=True, bias=False)
    _require_activation(model, "activation", "gelu")
    config: FalconConfig = model.config
    if _kind(config.rope_scaling or {}) != "default":
        raise ArgumentError("GGUF files of the architecture falcon have no rope_scaling")
    values |= {
        "feed_forward_length": config.ffn_hidden_size or 4 * config.hidden_size,
        "attention.head_count_kv": config.kv_heads,
        "tensor_data_layout": "jploski",  # the order of the rows in `rows_by_group`
        "vocab_size": config.vocab_size,
    }
    return Settings(values)


def _gpt2(model: Any, values: Values) -> Settings:
    _require(model, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False)
    _require_activation(model, "activation_function", "gelu_new")
    config = model.config
    inner = config.n_inner or 4 * config.n_embd
    return Settings(values | {"feed_forward_length": inner, "vocab_size": config.vocab_size})


# ------------------------------------------------------------------------------------------------------------- encoders


def _bert(model: Any, values: Values) -> Settings:
    """BERT's encoder. The pooler, which embeddings of texts do not use, is omitted."""
    config = model.config
    _require(model, is_decoder=False)
    _require_activation(model, "hidden_act", "gelu")
    values |= {"attention.causal": False, "vocab_size": config.vocab_size}
    return Settings(values, general=_segments(config.type_vocab_size, config.pad_token_id))


def _classifier(model: Any, values: Values) -> Settings:
    """BERT's classifier of texts."""
    encoder = _bert(model, values)
    labels = {"classifier.output_labels": list(model.config.labels), "pooling_type": CLASSIFIER}
    return Settings(encoder.values | labels, general=encoder.general)


def _roberta(model: Any, values: Values) -> Settings:
    """RoBERTa, whose first positions, of padding, a file omits."""
    return _bert(model, values | {"context_length": model.context_length})


def _distilbert(model: Any, values: Values) -> Settings:
    """DistilBERT: a BERT without segments."""
    config = model.config
    _require_activation(model, "activation", "gelu")
    values |= {"attention.causal": False, "attention.layer_norm_epsilon": EPS, "vocab_size": config.vocab_size}
    return Settings(values, general=_segments(1, config.pad_token_id))


def _segments(count: int, padding: int) -> Mapping[str, Any]:
    """Return the entries of the tokenizer that readers of an encoder need."""
    return {"tokenizer.ggml.token_type_count": count, "tokenizer.ggml.padding_token_id": padding}


_WRITERS: dict[type[PretrainedModel], Callable[[Any, Values], Settings]] = {
    Llama: _llama,
    Mistral: _llama,
    Qwen2: _qwen,
    Qwen3: _qwen,
    Mixtral: _mixtral,
    Olmoe: _olmoe,
    Qwen2Moe: _qwen_moe,
    Qwen3Moe: _qwen_moe,
    Gemma: _gemma,
    Gemma2: _gemma2,
    Gemma3: _gemma3,
    Phi3: _phi3,
    Falcon: _falcon,
    GPT2: _gpt2,
    BertModel: _bert,
    BertForSequenceClassification: _classifier,
    RobertaModel: _roberta,
    DistilBertModel: _distilbert,
}
