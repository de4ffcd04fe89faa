"""Convert a model to a GGUF file for tallow, llama.cpp and what is built on it; gguf_models.py reads such files.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the entries that llama.cpp reads, from its
         `src/llama-model.cpp`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError, CheckpointError
from tallow.io.atomic import atomic_write
from tallow.io.gguf import GGUF
from tallow.io.gguf_layout import ALIGNMENT_KEY, FOREIGN
from tallow.io.gguf_shards import COUNT, NUMBER, TENSORS
from tallow.io.gguf_write import Target, write
from tallow.io.source import Path
from tallow.kernels.block_matrix import BlockMatrix
from tallow.models.causal_lm import CausalLM
from tallow.models.gguf_names import FREQUENCY_DIVISORS, NAMES, GGUFNames
from tallow.models.gguf_recipes import Recipe, formats_of, recipe_of
from tallow.models.llama import Llama
from tallow.models.llama_formats import PROJECTIONS, reordered
from tallow.models.mistral import Mistral
from tallow.models.qwen import Qwen2, Qwen3
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.rope_scaling import frequencies

CLASSES: tuple[type[CausalLM], ...] = (Llama, Mistral, Qwen2, Qwen3)
INTERLEAVED = "llama"  # the architecture whose rotary pairs are neighbours, and that reads FREQUENCY_DIVISORS
QUANTIZATION_VERSION = 2  # of the layouts in gguf_blocks.py
FLOATS = {dtypes.float32: "F32", dtypes.float16: "F16", dtypes.bfloat16: "BF16"}
FLOAT_FIELDS = ("rms_norm_eps", "rope_theta")
REPLACED = ("general.file_type", "general.quantization_version", ALIGNMENT_KEY, COUNT, NUMBER, TENSORS)

Importance = Mapping[str, Array]


class Part(NamedTuple):
    """A tensor of a model: its shape, and a function that returns it."""

    shape: tuple[int, ...]
    get: Callable[[], Tensor | BlockMatrix]


def save_gguf(
    model: CausalLM,
    path: Path,
    file_type: str | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    importance: Importance | None = None,
) -> None:
    """Write a model as a GGUF file, which is replaced atomically at the end.

    Args:
        file_type: a name in gguf_recipes.RECIPES, such as "Q4_K_M"; None means the dtype of the weights.
        tokenizer: metadata of the tokenizer, as from tallow.text.gguf_vocabulary.
        importance: of the columns of each matrix, by its name in the file.

    Raises:  ArgumentError for a model that GGUF files cannot describe, or weights that are infinite or NaN

    Example:
        save_gguf(AutoModel.from_pretrained("Qwen/Qwen3-0.6B"), "qwen3.gguf", "Q4_K_M")
    """
    metadata, targets = model_targets(model, file_type, tokenizer, importance)
    with atomic_write(path) as file:
        write(targets, metadata, file)


def model_targets(
    model: CausalLM,
    file_type: str | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    importance: Importance | None = None,
) -> tuple[dict[str, Any], dict[str, Target]]:
    """Return the metadata and the tensors of a model, as gguf_write.write takes them; arguments as for `save_gguf`."""
    metadata, parts = gguf_form(model)
    recipe = recipe_of(file_type or FLOATS[model.head_weight.dtype])
    metadata |= _file_entries(recipe) | dict(tokenizer or {}) | _ends(model.config, tokenizer or {})
    config = model.config
    group = config.num_attention_heads // config.num_key_value_heads
    return metadata, _targets(parts, recipe, config.num_hidden_layers, group, importance)


def file_targets(
    file: GGUF, file_type: str | None = None, importance: Importance | None = None
) -> tuple[dict[str, Any], dict[str, Target]]:
    """Return the metadata and the tensors of a GGUF file of any architecture, in other formats.

    A tensor that already has its format is copied. All shards become one file.

    Args:    file_type: as for `save_gguf`; None keeps the formats
    Raises:  CheckpointError for formats that tallow does not read
    """
    metadata = {key: value for key, value in file.metadata.items() if key not in REPLACED}
    infos = {name: file.info(name) for name in file}
    for name, info in infos.items():
        if info.type in FOREIGN.values():
            file.get_blocks(name)  # raises
    if file_type is None:
        metadata |= {key: file.metadata[key] for key in REPLACED[:2] if key in file.metadata}
        formats = {name: info.type for name, info in infos.items()}
        return metadata, {name: _of_file(file, name, formats[name], None) for name in infos}
    recipe = recipe_of(file_type)
    architecture = metadata.get("general.architecture")
    layers, heads, kv_heads = (
        metadata.get(f"{architecture}.{key}")
        for key in ("block_count", "attention.head_count", "attention.head_count_kv")
    )
    if type(layers) is not int or type(heads) is not int:
        raise CheckpointError(f"{file.name} has no {architecture}.block_count", hint="it may be a part of a model")
    group = heads // kv_heads if type(kv_heads) is int and kv_heads > 0 else 1
    shapes = {name: info.shape for name, info in infos.items()}
    formats = formats_of(recipe, shapes, layers, group, importance=importance is not None)
    # Integers are no weights.
    formats |= {name: info.type for name, info in infos.items() if info.type.startswith("I")}
    found = importance or {}
    return metadata | _file_entries(recipe), {
        name: _of_file(file, name, format, found.get(name)) for name, format in formats.items()
    }


def gguf_form(model: CausalLM) -> tuple[dict[str, Any], dict[str, Part]]:
    """Return the metadata of a model and its tensors, by their names in the file.

    Raises:  ArgumentError for a model that GGUF files cannot describe
    """
    names = names_of(model)
    assert isinstance(model, Llama)  # as all CLASSES
    architecture = names.architecture
    config = model.config
    _check(model, architecture)
    # Readers check the types of values, and a config may have rope_theta=10000.
    values = {key: _as_declared(config, field) for field, key in names.fields.items()} | {
        "attention.key_length": config.head_width,
        "attention.value_length": config.head_width,
        "rope.dimension_count": config.head_width,
        "vocab_size": config.vocab_size,
    }
    if architecture != INTERLEAVED:
        del values["attention.sliding_window"]  # no layer has one
    metadata = {"general.architecture": architecture, "general.type": "model"}
    metadata |= {f"{architecture}.{key}": value for key, value in values.items() if value is not None}
    parts = {
        file_name(name, names): part for name, part in _parts(model, interleaved=architecture == INTERLEAVED).items()
    }
    return _with_scaling(metadata, parts, config, architecture)


def _as_declared(config: Any, field: str) -> Any:
    value = getattr(config, field)
    return float(value) if field in FLOAT_FIELDS else value


def _check(model: Llama, architecture: str) -> None:
    """Raise ArgumentError for settings that have no entry in the metadata."""
    config = model.config
    if config.activation != "silu":
        raise ArgumentError(f"GGUF has no entry for hidden_act={config.activation!r}")
    if config.mlp_bias:
        raise ArgumentError("GGUF has no names for mlp_bias")
    if architecture != INTERLEAVED and any(window is not None for window in model.windows):
        raise ArgumentError(f"GGUF has no entry for the sliding window of a {type(model).__name__}")


def _with_scaling(
    metadata: dict[str, Any], parts: dict[str, Part], config: Any, architecture: str
) -> tuple[dict[str, Any], dict[str, Part]]:
    """Add the scaling of rotary angles."""
    scaling = config.rope_scaling or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "linear":
        prefix = f"{architecture}.rope.scaling"
        return metadata | {f"{prefix}.type": "linear", f"{prefix}.factor": float(scaling["factor"])}, parts
    if kind in ("llama3", "divisors") and architecture == INTERLEAVED:
        width, base = config.rotary_width, config.rope_theta
        scaled = frequencies(width, base, scaling, config.max_position_embeddings)
        divisors = wrap((frequencies(width, base) / scaled).astype(np.float32))
        return metadata, parts | {FREQUENCY_DIVISORS: Part(tuple(divisors.shape), lambda: divisors)}
    if kind != "default":
        raise ArgumentError(f"GGUF files of the architecture {architecture} have no rope_scaling of type {kind!r}")
    return metadata, parts


def _parts(model: Llama, *, interleaved: bool) -> dict[str, Part]:
    """Return the model's tensors by their own names, in the order of the state dict."""
    parts = {}
    modules = dict(model.named_modules())
    for name, tensor in model.state_dict().items():
        path, _, attribute = name.rpartition(".")
        layer = modules[path]
        value: Tensor | BlockMatrix = tensor
        if isinstance(layer, BlockLinear | BlockEmbedding) and attribute == "blocks":
            name, value = f"{path}.weight", layer.matrix
        get = _getter(value)
        if model.config.rope_interleaved != interleaved and name.rpartition(".")[0].endswith(PROJECTIONS):
            get = _reordering(value, model.config.head_width, interleaved)
        parts[name] = Part(tuple(value.shape), get)
    return parts


def _getter(value: Tensor | BlockMatrix) -> Callable[[], Tensor | BlockMatrix]:
    return lambda: value


def _reordering(value: Tensor | BlockMatrix, width: int, interleaved: bool) -> Callable[[], Tensor]:
    """Return a function that reorders the rows of a projection, or of its bias, when the tensor is written."""

    def get() -> Tensor:
        array = value.widen() if isinstance(value, BlockMatrix) else value.detach().cpu().array
        return wrap(reordered(array, width, to_interleaved=interleaved))

    return get


def names_of(model: CausalLM) -> GGUFNames:
    """Return the names of a model's tensors.  Raises: ArgumentError for a model that is not written"""
    if type(model) not in CLASSES:
        raise ArgumentError(
            f"tallow writes no GGUF files of a {type(model).__name__}",
            hint=f"it writes models of these classes: {', '.join(kind.__name__ for kind in CLASSES)}",
        )
    return NAMES[type(model).__name__]


def file_name(name: str, names: GGUFNames) -> str:
    """Return the name in the file for a name of the state dict.  Raises: ArgumentError if it has none"""
    theirs = names.to_gguf(name)
    if theirs is None:
        raise ArgumentError(f"GGUF has no name for {name}", hint="convert the model as it was loaded")
    return theirs


def _targets(
    parts: Mapping[str, Part], recipe: Recipe, layers: int, group: int, importance: Importance | None
) -> dict[str, Target]:
    shapes = {name: part.shape for name, part in parts.items()}
    formats = formats_of(recipe, shapes, layers, group, importance=importance is not None)
    found = importance or {}
    return {
        name: Target(formats[name], part.shape, _fitting(part.get, formats[name]), found.get(name), finite=True)
        for name, part in parts.items()
    }


def _fitting(get: Callable[[], Tensor | BlockMatrix], format: str) -> Callable[[], Tensor | BlockMatrix]:
    """Return a function that returns blocks only if they are of this format."""

    def fitting() -> Tensor | BlockMatrix:
        value = get()
        return wrap(value.widen()) if isinstance(value, BlockMatrix) and value.format != format else value

    return fitting


def _of_file(file: GGUF, name: str, format: str, importance: Array | None) -> Target:
    def get() -> Tensor | BlockMatrix:
        matrix = file.matrix(name)
        return matrix if matrix is not None and matrix.format == format else file[name]

    return Target(format, file.info(name).shape, get, importance)


def _file_entries(recipe: Recipe) -> dict[str, Any]:
    return {"general.file_type": recipe.number, "general.quantization_version": QUANTIZATION_VERSION}


def _ends(config: Any, tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids of BOS and of the tokens that end a text; a file has entries for three of those."""
    key = "tokenizer.ggml.{}_token_id".format
    ends = [tokenizer.get(key("eos")), *config.eos_token_id]
    ids = list(dict.fromkeys(end for end in ends if end is not None))
    entries = dict(zip(map(key, ("eos", "eot", "eom")), ids, strict=False))
    bos = tokenizer.get(key("bos"), config.bos_token_id)
    return entries if bos is None else entries | {key("bos"): bos}
