"""The config of a model in a GGUF file, from the metadata and from the tensors that exist.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; values that files omit, from llama.cpp's
         `src/llama-model.cpp`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tallow import models
from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.models.config import Config, is_mechanism, report_unknown
from tallow.models.encoders.distilbert import EPS
from tallow.models.gguf.names import (
    FREQUENCY_DIVISORS,
    LONG_FACTORS,
    NAMES,
    SHORT_FACTORS,
    YARN_ASSUMED,
    YARN_BETAS,
    GGUFNames,
)
from tallow.nn.rope_scaling import ORIGINAL
from tallow.text.gguf_tokenizer import end_ids

EMBEDDING, HEAD = "token_embd.weight", "output.weight"
# Layers of the models whose scores are divided by the root of width / heads, not of the head width: Gemma 2 27B, 3 27B.
LARGEST = {"Gemma2": 46, "Gemma3": 62}

# Entries that repeat others or the tensors, that the sentence encoder reads, or that describe the training.
UNREAD = {"vocab_size", "pooling_type", "token_type_count", "tensor_data_layout", "rope.scaling.finetuned"}

SPARSE = {
    "llama": "Mixtral",
    "olmoe": "Olmoe",
    "qwen2moe": "Qwen2Moe",
    "qwen3moe": "Qwen3Moe",
}  # architecture -> model with experts
NORMALIZED = ("Mixtral", "Qwen3Moe")  # models whose weights of a token's experts add up to 1, as readers assume


@dataclass(frozen=True)
class Design:
    """The model of a file.

    Attributes:
        model: the name of its class in tallow.models.
        parts: options of its constructor.
    """

    model: str
    names: GGUFNames
    config: Any
    parts: Mapping[str, bool] = field(default_factory=dict)


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
    metadata = _Metadata(file, architecture)
    design = _READERS[architecture](metadata)
    metadata.check_unread()
    return design


def vocabulary_size(file: GGUF) -> int:
    """Return the number of rows of the token embedding.  Raises: CheckpointError if the file has none"""
    return _row_count(file, EMBEDDING)


def _row_count(file: GGUF, name: str) -> int:
    """Return the number of rows of a matrix.  Raises: CheckpointError if the file has no such matrix"""
    if name not in file or len(file.info(name).shape) != 2:
        raise CheckpointError(f"{file.name} has no {name} of two dims", hint="it may be a part of a model")
    return file.info(name).shape[0]


class _Metadata:
    """The entries of a file's metadata that describe its model."""

    def __init__(self, file: GGUF, architecture: str) -> None:
        self.file = file
        self.architecture = architecture
        self._read: set[str] = set()

    def get(self, key: str) -> Any:
        """Return an entry below the architecture's name; None if it is missing."""
        self._read.add(key)
        return self.file.metadata.get(f"{self.architecture}.{key}")

    def check_unread(self) -> None:
        """Name the entries below the architecture's name that nothing has read in a TallowWarning, as those of a
        `config.json`.

        Raises:  CheckpointError for an entry that is known to change the output of other models
        """
        prefix = f"{self.architecture}."
        keys = {key.removeprefix(prefix): value for key, value in self.file.metadata.items() if key.startswith(prefix)}
        unread = {key: value for key, value in keys.items() if key not in self._read | UNREAD}
        for key, value in unread.items():
            if is_mechanism(key.replace(".", "_"), value):
                raise CheckpointError(f"{self.file.name}: {prefix}{key} is {value!r:.80}; tallow does not compute it")
        report_unknown(
            {f"{prefix}{key}": value for key, value in unread.items()}, f"{self.file.name}: the reader of GGUF files"
        )

    def require(self, key: str, values: tuple[Any, ...]) -> None:
        """Raise CheckpointError unless the entry is missing or one of `values`."""
        value = self.get(key)
        if value is not None and value not in values:
            supported = " or ".join(map(repr, values))
            raise CheckpointError(
                f"{self.file.name}: {self.architecture}.{key} is {value!r:.80}; tallow supports {supported}"
            )

    def tokenizer(self, key: str) -> Any:
        """Return an entry of the tokenizer; None if it is missing."""
        return self.file.metadata.get(f"tokenizer.ggml.{key}")

    def settings(self, names: GGUFNames) -> dict[str, Any]:
        """Return the values of the config's fields, None for missing ones, and the size of the vocabulary."""
        values = {field: self.get(key) for field, key in names.fields.items()}
        return values | {"vocab_size": vocabulary_size(self.file)}

    def config(self, model: str, settings: Mapping[str, Any]) -> Config:
        """Return the config of a model of tallow.models, with its defaults for fields that are None."""
        entries = {name: value for name, value in settings.items() if value is not None}
        config_class: type[Config] = getattr(models, model).config_class
        return config_class.from_entries(entries, self.file.name, strict=True)


def _decoder_settings(metadata: _Metadata, names: GGUFNames) -> dict[str, Any]:
    """Return the settings that all language models have."""
    return metadata.settings(names) | {
        "bos_token_id": metadata.tokenizer("bos_token_id"),
        "eos_token_id": end_ids(metadata.file.metadata),
        "pad_token_id": metadata.tokenizer("padding_token_id"),
        "tie_word_embeddings": HEAD not in metadata.file,
    }


def _llama_settings(metadata: _Metadata, names: GGUFNames) -> dict[str, Any]:
    """Return the settings that all models of Llama's design have."""
    settings = _decoder_settings(metadata, names)
    _default_heads(settings, metadata.get("attention.value_length"), metadata.file.name)
    if names.architecture != "phi3":  # which rotates a part of each head
        metadata.require("rope.dimension_count", (settings["head_dim"],))
    settings["attention_bias"] = "blk.0.attn_q.bias" in metadata.file
    settings["rope_interleaved"] = bool(names.interleaved)
    settings["rope_scaling"] = _scaling(metadata)
    return settings


def _default_heads(settings: dict[str, Any], value_width: Any, source: str) -> None:
    """Fill in the defaults of the format, in place: as many key/value heads as query heads, and head widths that sum
    to the model's width. The defaults of the models' configs do not apply.

    Raises:  CheckpointError for keys and values of different widths
    """
    heads, width = settings["num_attention_heads"], settings["hidden_size"]
    if settings["num_key_value_heads"] is None:
        settings["num_key_value_heads"] = heads
    if type(heads) is not int or type(width) is not int or heads < 1:
        return  # the config raises for it
    usual = width // heads if width % heads == 0 else None
    if settings["head_dim"] is None:
        settings["head_dim"] = usual
    value_width = usual if value_width is None else value_width
    if value_width is not None and value_width != settings["head_dim"]:
        raise CheckpointError(
            f"{source}: heads of {settings['head_dim']!r:.80} elements for keys and {value_width!r:.80} for values; "
            "tallow supports one width for both"
        )


def _scaling(metadata: _Metadata) -> Mapping[str, Any] | None:
    """Return the rotary scaling in the form of a `config.json`."""
    file, kind = metadata.file, metadata.get("rope.scaling.type") or "none"
    original = metadata.get("rope.scaling.original_context_length")
    if LONG_FACTORS in file or SHORT_FACTORS in file:
        if not (LONG_FACTORS in file and SHORT_FACTORS in file):
            raise CheckpointError(f"{file.name} has only one of {LONG_FACTORS} and {SHORT_FACTORS}")
        factors = {"long_factor": _numbers(file, LONG_FACTORS), "short_factor": _numbers(file, SHORT_FACTORS)}
        attention = metadata.get("rope.scaling.attn_factor")
        return {"rope_type": "longrope", "attention_factor": attention, ORIGINAL: original, **factors}
    if FREQUENCY_DIVISORS in file:
        return {"rope_type": "divisors", "divisors": _numbers(file, FREQUENCY_DIVISORS)}
    if kind == "linear":
        return {"rope_type": "linear", "factor": metadata.get("rope.scaling.factor")}
    if kind == "yarn":
        for key, default in YARN_ASSUMED.items():
            metadata.require(f"rope.scaling.{key}", (default,))
        betas = {name: metadata.get(key) for name, key in YARN_BETAS.items()}
        given = {name: value for name, value in betas.items() if value is not None}
        return {"rope_type": "yarn", "factor": metadata.get("rope.scaling.factor"), ORIGINAL: original, **given}
    if kind != "none":
        raise CheckpointError(f"{file.name}: unsupported rotary scaling {kind!r:.80}; tallow reads 'linear' and 'yarn'")
    return None


def _numbers(file: GGUF, name: str) -> list[float]:
    """Return a tensor as a list. A scaling has a number for each pair of a head, so it is small.

    Raises:  CheckpointError for anything else
    """
    info = file.info(name)
    if len(info.shape) != 1 or info.count > 2**16:
        raise CheckpointError(f"{file.name}: tensor {name!r} has the shape {info.shape}; expected a short vector")
    values: list[float] = file[name].float().tolist()
    return values


def _llama(metadata: _Metadata) -> Design:
    """Llama and Mistral, which files do not distinguish; and Mixtral, which has experts."""
    return _sparse(metadata) if metadata.get("expert_count") else _plain(metadata, "Llama")


def _sparse(metadata: _Metadata) -> Design:
    """Models with experts, whose files do not say whether the weights of a token's experts add up to 1."""
    model = SPARSE[metadata.architecture]
    if metadata.get("expert_used_count") is None:
        raise CheckpointError(f"{metadata.file.name} has no {metadata.architecture}.expert_used_count")
    names = NAMES[model]
    settings = _llama_settings(metadata, names) | {"norm_topk_prob": model in NORMALIZED}
    metadata.require("expert_weights_norm", (settings["norm_topk_prob"],))
    return Design(model, names, metadata.config(model, settings))


def _qwen2(metadata: _Metadata) -> Design:
    return _plain(metadata, "Qwen2")


def _qwen3(metadata: _Metadata) -> Design:
    return _plain(metadata, "Qwen3")


def _gemma(metadata: _Metadata) -> Design:
    return _plain(metadata, "Gemma")


def _plain(metadata: _Metadata, model: str) -> Design:
    names = NAMES[model]
    return Design(model, names, metadata.config(model, _llama_settings(metadata, names)))


def _gemma2(metadata: _Metadata) -> Design:
    return _scaled(metadata, "Gemma2", {})


def _gemma3(metadata: _Metadata) -> Design:
    # Older files have no entries for these, and all readers assume the config's defaults.
    local = {
        "rope_local_base_freq": metadata.get("rope.freq_base_swa"),
        "sliding_window_pattern": metadata.get("attention.sliding_window_pattern"),
    }
    return _scaled(metadata, "Gemma3", local)


def _scaled(metadata: _Metadata, model: str, more: Mapping[str, Any]) -> Design:
    """Return a design of Llama's kind with a scale of the scores."""
    names = NAMES[model]
    settings = _llama_settings(metadata, names) | dict(more)
    scale, heads, width = metadata.get("attention.scale"), settings["num_attention_heads"], settings["hidden_size"]
    if isinstance(scale, float) and scale > 0:
        settings["query_pre_attn_scalar"] = scale**-2
    elif settings["num_hidden_layers"] == LARGEST[model] and type(heads) is type(width) is int and heads > 0:
        settings["query_pre_attn_scalar"] = width // heads
    else:
        settings["query_pre_attn_scalar"] = settings["head_dim"]
    return Design(model, names, metadata.config(model, settings))


def _phi3(metadata: _Metadata) -> Design:
    names = NAMES["Phi3"]
    settings = _llama_settings(metadata, names)
    settings["attention_bias"] = "blk.0.attn_qkv.bias" in metadata.file
    settings["sliding_window"] = settings["sliding_window"] or None  # 0 stands for none
    rotated, width = metadata.get("rope.dimension_count"), settings["head_dim"]
    if type(rotated) is type(width) is int and 0 < rotated < width:
        settings["partial_rotary_factor"] = _share(rotated, width)
    return Design("Phi3", names, metadata.config("Phi3", settings))


def _share(part: int, whole: int) -> float:
    """Return the number nearest to part / whole whose product with `whole`, rounded down, is `part`."""
    share = part / whole
    return share if int(whole * share) == part else math.nextafter(share, 1)


def _falcon(metadata: _Metadata) -> Design:
    """Falcon with one key/value head (7B), or of the new design with groups of heads and one or two norms."""
    two_norms = "blk.0.attn_norm_2.weight" in metadata.file
    names = NAMES["FalconTwoNorms" if two_norms else "Falcon"]
    settings = _decoder_settings(metadata, names)
    settings["bias"] = "blk.0.attn_qkv.bias" in metadata.file
    if settings["num_kv_heads"] is None:
        settings["num_kv_heads"] = settings["num_attention_heads"]
    if settings["num_kv_heads"] != 1 or two_norms:
        settings |= {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 2 if two_norms else 1}
    return Design("Falcon", names, metadata.config("Falcon", settings))


def _gpt2(metadata: _Metadata) -> Design:
    names = NAMES["GPT2"]
    return Design("GPT2", names, metadata.config("GPT2", _decoder_settings(metadata, names)))


def _bert(metadata: _Metadata) -> Design:
    """BERT, or RoBERTa, whose positions the file counts as BERT does; DistilBERT, which has no table of segments; or a
    classifier of whole texts."""
    metadata.require("attention.causal", (False,))
    file = metadata.file
    if "token_types.weight" not in file:
        return _distilbert(metadata)
    model = "BertForSequenceClassification" if "cls.output.weight" in file else "BertModel"
    names = NAMES[model]
    settings = metadata.settings(names)
    settings["type_vocab_size"] = _row_count(file, "token_types.weight")
    settings["pad_token_id"] = metadata.tokenizer("padding_token_id")
    if model == "BertModel":
        return Design(model, names, metadata.config(model, settings), {"add_pooling_layer": False})
    labels = metadata.get("classifier.output_labels")
    count = _row_count(file, "cls.output.weight")
    known = isinstance(labels, list) and len(labels) == count
    settings["id2label"] = {str(i): labels[i] for i in range(count)} if known else None
    settings["num_labels"] = count
    return Design(model, names, metadata.config(model, settings))


def _distilbert(metadata: _Metadata) -> Design:
    eps = metadata.get("attention.layer_norm_epsilon")
    if not isinstance(eps, float) or not math.isclose(eps, EPS, rel_tol=1e-6):
        raise CheckpointError(
            f"{metadata.file.name}: without token_types.weight it is a DistilBERT, but its layer_norm_epsilon is "
            f"{eps!r:.80}, not {EPS}"
        )
    names = NAMES["DistilBertModel"]
    settings = metadata.settings(names) | {"pad_token_id": metadata.tokenizer("padding_token_id")}
    return Design("DistilBertModel", names, metadata.config("DistilBertModel", settings))


_READERS: dict[str, Callable[[_Metadata], Design]] = {
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
}
