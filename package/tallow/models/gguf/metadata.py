"""The metadata of a GGUF file that describe its model, and the settings that language models have.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; values that files omit, from llama.cpp's
         `src/llama-model.cpp`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tallow import models
from tallow.errors import CheckpointError
from tallow.io.gguf import GGUF
from tallow.models.config import Config, is_mechanism, report_unknown
from tallow.models.gguf.names import (
    FREQUENCY_DIVISORS,
    LONG_FACTORS,
    SHORT_FACTORS,
    YARN_ASSUMED,
    YARN_BETAS,
    GGUFNames,
)
from tallow.nn.rope_scaling import ORIGINAL
from tallow.text.gguf_tokenizer import end_ids

YARN_LOGARITHM = "rope.scaling.yarn_log_multiplier"
# By architecture: what a file has in that entry for an mscale of 1. Other architectures have no such entry.
LOGARITHMS = {"mistral3": 1.0, "deepseek2": 0.1}
EMBEDDING, HEAD = "token_embd.weight", "output.weight"
# Entries that repeat others or the tensors, that the sentence encoder reads, or that describe the training.
UNREAD = {"vocab_size", "pooling_type", "token_type_count", "tensor_data_layout", "rope.scaling.finetuned"}


@dataclass(frozen=True)
class Design:
    """The model of a file.

    Attributes:
        model: the name of its class in tallow.models.
        parts: options of its constructor.
        further: the number of layers after those of the model, which predict further tokens and are left out.
        file: the file with its tensors as the model has them; None means as they are.
    """

    model: str
    names: GGUFNames
    config: Any
    parts: Mapping[str, bool] = field(default_factory=dict)
    further: int = 0
    file: GGUF | None = None


def vocabulary_size(file: GGUF) -> int:
    """Return the number of rows of the token embedding.  Raises: CheckpointError if the file has none"""
    return row_count(file, EMBEDDING)


def row_count(file: GGUF, name: str) -> int:
    """Return the number of rows of a matrix.  Raises: CheckpointError if the file has no such matrix"""
    if name not in file or len(file.info(name).shape) != 2:
        raise CheckpointError(f"{file.name} has no {name} of two dims", hint="it may be a part of a model")
    return file.info(name).shape[0]


class Metadata:
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


def decoder_settings(metadata: Metadata, names: GGUFNames) -> dict[str, Any]:
    """Return the settings that all language models have."""
    return metadata.settings(names) | {
        "bos_token_id": metadata.tokenizer("bos_token_id"),
        "eos_token_id": end_ids(metadata.file.metadata),
        "pad_token_id": metadata.tokenizer("padding_token_id"),
        "tie_word_embeddings": HEAD not in metadata.file,
    }


def llama_settings(metadata: Metadata, names: GGUFNames, *, partial: bool = False) -> dict[str, Any]:
    """Return the settings that all models of Llama's design have.

    Args:    partial: the model may rotate a part of each head
    """
    settings = decoder_settings(metadata, names)
    _default_heads(settings, metadata.get("attention.value_length"), metadata.file.name)
    rotated, width = metadata.get("rope.dimension_count"), settings["head_dim"]
    if not partial:
        metadata.require("rope.dimension_count", (width,))
    elif type(rotated) is type(width) is int and 0 < rotated <= width:
        settings["partial_rotary_factor"] = share(rotated, width)
    settings["attention_bias"] = not {"blk.0.attn_q.bias", "blk.0.attn_qkv.bias"}.isdisjoint(metadata.file)
    settings["rope_interleaved"] = bool(names.interleaved)
    settings["rope_scaling"] = rope_scaling(metadata)
    return settings


def share(part: int, whole: int) -> float:
    """Return the number nearest to part / whole whose product with `whole`, rounded down, is `part`."""
    share = part / whole
    return share if int(whole * share) == part else math.nextafter(share, 1)


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


def rope_scaling(metadata: Metadata) -> Mapping[str, Any] | None:
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
        unit = LOGARITHMS.get(metadata.architecture)
        logarithm = None if unit is None else metadata.get(YARN_LOGARITHM)
        for key, default in YARN_ASSUMED.items():
            metadata.require(f"rope.scaling.{key}", (default,) if logarithm is None else (default, logarithm))
        betas = {name: metadata.get(key) for name, key in YARN_BETAS.items()}
        given = {name: value for name, value in betas.items() if value is not None}
        if unit is not None and isinstance(logarithm, float):
            given |= dict.fromkeys(("mscale", "mscale_all_dim"), logarithm / unit)
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
