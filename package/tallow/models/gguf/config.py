"""The config of a model in a GGUF file, from the metadata and from the tensors that exist.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; values that files omit, from llama.cpp's
         `src/llama-model.cpp`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.models.encoders.distilbert import EPS
from tallow.models.gguf.decoders import READERS
from tallow.models.gguf.metadata import Design, Metadata, decoder_settings, llama_settings, row_count, vocabulary_size
from tallow.models.gguf.names import NAMES
from tallow.models.gguf.states import STATE_READERS

# Layers of the models whose scores are divided by the root of width / heads, not of the head width: Gemma 2 27B, 3 27B.
LARGEST = {"Gemma2": 46, "Gemma3": 62}

SPARSE = {
    "llama": "Mixtral",
    "olmoe": "Olmoe",
    "qwen2moe": "Qwen2Moe",
    "qwen3moe": "Qwen3Moe",
}  # architecture -> model with experts
NORMALIZED = ("Mixtral", "Qwen3Moe")  # models whose weights of a token's experts add up to 1, as readers assume


def design_of(file: GGUF) -> Design:
    """Return the model of a file.

    Raises:  CheckpointError for an unsupported architecture, and for missing and unsupported values of the metadata
    """
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in _READERS:
        raise CheckpointError(
            f"{file.name}: unsupported architecture {architecture!r:.200}; tallow reads {', '.join(_READERS)}",
            hint="see what the file holds: tallow inspect FILE",
        )
    vocabulary_size(file)  # before the metadata is read
    metadata = Metadata(file, architecture)
    design = _READERS[architecture](metadata)
    metadata.check_unread()
    return design


def _llama(metadata: Metadata) -> Design:
    """Llama and Mistral, which files do not distinguish; and Mixtral, which has experts."""
    return _sparse(metadata) if metadata.get("expert_count") else _plain(metadata, "Llama")


def _sparse(metadata: Metadata) -> Design:
    """Models with experts, whose files do not say whether the weights of a token's experts add up to 1."""
    model = SPARSE[metadata.architecture]
    if metadata.get("expert_used_count") is None:
        raise CheckpointError(f"{metadata.file.name} has no {metadata.architecture}.expert_used_count")
    names = NAMES[model]
    settings = llama_settings(metadata, names) | {"norm_topk_prob": model in NORMALIZED}
    metadata.require("expert_weights_norm", (settings["norm_topk_prob"],))
    return Design(model, names, metadata.config(model, settings))


def _qwen2(metadata: Metadata) -> Design:
    return _plain(metadata, "Qwen2")


def _qwen3(metadata: Metadata) -> Design:
    return _plain(metadata, "Qwen3")


def _gemma(metadata: Metadata) -> Design:
    return _plain(metadata, "Gemma")


def _plain(metadata: Metadata, model: str) -> Design:
    names = NAMES[model]
    return Design(model, names, metadata.config(model, llama_settings(metadata, names)))


def _gemma2(metadata: Metadata) -> Design:
    return _scaled(metadata, "Gemma2", {})


def _gemma3(metadata: Metadata) -> Design:
    # Older files have no entries for these, and all readers assume the config's defaults.
    local = {
        "rope_local_base_freq": metadata.get("rope.freq_base_swa"),
        "sliding_window_pattern": metadata.get("attention.sliding_window_pattern"),
    }
    return _scaled(metadata, "Gemma3", local)


def _scaled(metadata: Metadata, model: str, more: Mapping[str, Any]) -> Design:
    """Return a design of Llama's kind with a scale of the scores."""
    names = NAMES[model]
    settings = llama_settings(metadata, names) | dict(more)
    scale, heads, width = metadata.get("attention.scale"), settings["num_attention_heads"], settings["hidden_size"]
    if isinstance(scale, float) and scale > 0:
        settings["query_pre_attn_scalar"] = scale**-2
    elif settings["num_hidden_layers"] == LARGEST[model] and type(heads) is type(width) is int and heads > 0:
        settings["query_pre_attn_scalar"] = width // heads
    else:
        settings["query_pre_attn_scalar"] = settings["head_dim"]
    return Design(model, names, metadata.config(model, settings))


def _phi3(metadata: Metadata) -> Design:
    names = NAMES["Phi3"]
    settings = llama_settings(metadata, names, partial=True)
    settings["sliding_window"] = settings["sliding_window"] or None  # 0 stands for none
    return Design("Phi3", names, metadata.config("Phi3", settings))


def _falcon(metadata: Metadata) -> Design:
    """Falcon with one key/value head (7B), or of the new design with groups of heads and one or two norms."""
    two_norms = "blk.0.attn_norm_2.weight" in metadata.file
    names = NAMES["FalconTwoNorms" if two_norms else "Falcon"]
    settings = decoder_settings(metadata, names)
    settings["bias"] = "blk.0.attn_qkv.bias" in metadata.file
    if settings["num_kv_heads"] is None:
        settings["num_kv_heads"] = settings["num_attention_heads"]
    if settings["num_kv_heads"] != 1 or two_norms:
        settings |= {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 2 if two_norms else 1}
    return Design("Falcon", names, metadata.config("Falcon", settings))


def _gpt2(metadata: Metadata) -> Design:
    names = NAMES["GPT2"]
    return Design("GPT2", names, metadata.config("GPT2", decoder_settings(metadata, names)))


def _bert(metadata: Metadata) -> Design:
    """BERT, or RoBERTa, whose positions the file counts as BERT does; DistilBERT, which has no table of segments; or a
    classifier of whole texts."""
    metadata.require("attention.causal", (False,))
    file = metadata.file
    if "token_types.weight" not in file:
        return _distilbert(metadata)
    model = "BertForSequenceClassification" if "cls.output.weight" in file else "BertModel"
    names = NAMES[model]
    settings = metadata.settings(names)
    settings["type_vocab_size"] = row_count(file, "token_types.weight")
    settings["pad_token_id"] = metadata.tokenizer("padding_token_id")
    if model == "BertModel":
        return Design(model, names, metadata.config(model, settings), {"add_pooling_layer": False})
    labels = metadata.get("classifier.output_labels")
    count = row_count(file, "cls.output.weight")
    known = isinstance(labels, list) and len(labels) == count
    settings["id2label"] = {str(i): labels[i] for i in range(count)} if known else None
    settings["num_labels"] = count
    return Design(model, names, metadata.config(model, settings))


def _nomic_bert(metadata: Metadata) -> Design:
    metadata.require("attention.causal", (False,))
    model = "NomicBertModel"
    settings = metadata.settings(NAMES[model])
    settings["type_vocab_size"] = row_count(metadata.file, "token_types.weight")
    settings["pad_token_id"] = metadata.tokenizer("padding_token_id")
    return Design(model, NAMES[model], metadata.config(model, settings), {"add_pooling_layer": False})


def _distilbert(metadata: Metadata) -> Design:
    eps = metadata.get("attention.layer_norm_epsilon")
    if not isinstance(eps, float) or not math.isclose(eps, EPS, rel_tol=1e-6):
        raise CheckpointError(
            f"{metadata.file.name}: without token_types.weight it is a DistilBERT, but its layer_norm_epsilon is "
            f"{eps!r:.80}, not {EPS}"
        )
    names = NAMES["DistilBertModel"]
    settings = metadata.settings(names) | {"pad_token_id": metadata.tokenizer("padding_token_id")}
    return Design("DistilBertModel", names, metadata.config("DistilBertModel", settings))


_READERS: dict[str, Callable[[Metadata], Design]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    **dict.fromkeys(("olmoe", "qwen2moe", "qwen3moe"), _sparse),
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "phi3": _phi3,
    "falcon": _falcon,
    "gpt2": _gpt2,
    "bert": _bert,
    "nomic-bert": _nomic_bert,
    **READERS,
    **STATE_READERS,
}
