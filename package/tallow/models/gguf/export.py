"""Convert a model to a GGUF file for tallow, llama.cpp and what is built on it; models.py reads such files.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the entries that llama.cpp reads, from its
         `src/llama-model.cpp`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from tallow.io.gguf_weights import Floats, Target, Weights, joined, weights_of
from tallow.io.gguf_write import write
from tallow.io.source import Path
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders.llama_formats import PROJECTIONS, reordered
from tallow.models.encoders.roberta import RobertaModel
from tallow.models.gguf.names import GGUFNames, rows_by_group
from tallow.models.gguf.recipes import Layers, Recipe, formats_of, recipe_of
from tallow.models.gguf.settings import names_of, settings_of
from tallow.models.pretrained import PretrainedModel
from tallow.nn.block_layers import BlockLayer

QUANTIZATION_VERSION = 2  # of the layouts in gguf_blocks.py
FLOATS = {dtypes.float32: "F32", dtypes.float16: "F16", dtypes.bfloat16: "BF16"}
POSITIONS = "embeddings.position_embeddings.weight"
REPLACED = ("general.file_type", "general.quantization_version", ALIGNMENT_KEY, COUNT, NUMBER, TENSORS)

Importance = Mapping[str, Array]


class Part(NamedTuple):
    """A tensor of a model: its shape, and a function that returns it."""

    shape: tuple[int, ...]
    get: Callable[[], Weights]


def save_gguf(
    model: PretrainedModel,
    path: Path,
    file_type: str | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    importance: Importance | None = None,
) -> None:
    """Write a model as a GGUF file, which is replaced atomically at the end.

    Args:
        file_type: a name in recipes.RECIPES, such as "Q4_K_M"; None means the dtype of the weights.
        tokenizer: metadata of the tokenizer, as from tallow.text.gguf_tokenizer_export.
        importance: of the columns of each matrix, by its name in the file.

    Raises:  ArgumentError for a model that GGUF files cannot describe, or weights that are infinite or NaN

    Example:
        save_gguf(AutoModel.from_pretrained("Qwen/Qwen3-0.6B"), "qwen3.gguf", "Q4_K_M")
    """
    metadata, targets = model_targets(model, file_type, tokenizer, importance)
    with atomic_write(path) as file:
        write(targets, metadata, file)


def model_targets(
    model: PretrainedModel,
    file_type: str | None = None,
    tokenizer: Mapping[str, Any] | None = None,
    importance: Importance | None = None,
) -> tuple[dict[str, Any], dict[str, Target]]:
    """Return the metadata and the tensors of a model, as gguf_write.write takes them; arguments as for `save_gguf`."""
    metadata, parts = gguf_form(model)
    recipe = recipe_of(file_type or FLOATS[next(model.parameters()).dtype])
    metadata |= _file_entries(recipe) | dict(tokenizer or {})
    if isinstance(model, CausalLM):
        metadata |= _ends(model.config, tokenizer or {})
    return metadata, _targets(parts, recipe, _design(metadata, type(model).__name__), importance)


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
    shapes = {name: info.shape for name, info in infos.items()}
    formats = formats_of(recipe, shapes, _design(metadata, file.name), importance=importance is not None)
    # Integers are no weights.
    formats |= {name: info.type for name, info in infos.items() if info.type.startswith("I")}
    found = importance or {}
    return metadata | _file_entries(recipe), {
        name: _of_file(file, name, format, found.get(name)) for name, format in formats.items()
    }


def gguf_form(model: PretrainedModel) -> tuple[dict[str, Any], dict[str, Part]]:
    """Return the metadata of a model and its tensors, by their names in the file.

    Raises:  ArgumentError for a model that GGUF files cannot describe
    """
    names, settings = names_of(model), settings_of(model)
    metadata: dict[str, Any] = {"general.architecture": names.architecture, "general.type": "model"}
    metadata |= {f"{names.architecture}.{key}": value for key, value in settings.values.items() if value is not None}
    vectors = {name: _whole(Floats(wrap(array))) for name, array in settings.vectors.items()}
    return {**metadata, **settings.general}, _parts(model, names) | vectors


def _parts(model: PretrainedModel, names: GGUFNames) -> dict[str, Part]:
    """Return the model's tensors by their names in the file, in the order of the state dict."""
    parts: dict[str, list[Part]] = {}
    modules = dict(model.named_modules())
    for name, tensor in model.state_dict(keep_vars=True).items():
        path, _, attribute = name.rpartition(".")
        layer = modules[path]
        value: Tensor | BlockMatrix
        if isinstance(layer, BlockLayer) and attribute == "blocks":
            name, value = f"{path}.weight", layer.stored if layer.stored.shape == layer.size else layer.weight
        else:
            value = tensor.detach()
        if not (names.architecture == "bert" and name.startswith("pooler.")):
            parts.setdefault(file_name(name, names), []).append(_part(name, weights_of(value), model, names))
    return {
        name: _together(each) if ".*." in (names.from_gguf(name) or "") else each[0] for name, each in parts.items()
    }


def _together(experts: Sequence[Part]) -> Part:
    """Return the matrices of all experts as one tensor."""
    return Part((len(experts), *experts[0].shape), lambda: joined([expert.get() for expert in experts]))


def _whole(weights: Weights) -> Part:
    return Part(weights.shape, lambda: weights)


def _part(name: str, weights: Weights, model: PretrainedModel, names: GGUFNames) -> Part:
    """Return a tensor of the state dict in the form of the file; models.py reads that form."""
    module = names.parts(name)[1]
    shape = weights.shape
    if (rows := _rows(name, shape[0], model, names)) is not None:
        return Part((len(rows), *shape[1:]), lambda: weights.selected(rows))
    if module in names.transposed and len(shape) == 2:
        return _whole(weights.turned())
    if module in names.vectors:
        return Part(shape[1:], lambda: Floats(weights.floats()[0]))
    if names.norm_offset and name.endswith("norm.weight"):
        return Part(shape, lambda: Floats(weights.floats().float() + names.norm_offset))
    return _whole(weights)


def _rows(name: str, count: int, model: PretrainedModel, names: GGUFNames) -> Array | None:
    """Return the row of a tensor for each row in the file; None if the order is the same."""
    config: Any = model.config
    if name.rpartition(".")[0].endswith(PROJECTIONS) and config.rope_interleaved != bool(names.interleaved):
        return reordered(np.arange(count), config.head_width, to_interleaved=bool(names.interleaved))
    if names.parts(name)[1] in names.grouped:
        return np.argsort(rows_by_group(config.num_attention_heads, config.kv_heads, config.head_width))
    if isinstance(model, RobertaModel) and name == POSITIONS:
        return np.arange(count - model.context_length, count)
    return None


def file_name(name: str, names: GGUFNames) -> str:
    """Return the name in the file for a name of the state dict.  Raises: ArgumentError if it has none"""
    theirs = names.to_gguf(name)
    if theirs is None:
        raise ArgumentError(f"GGUF has no name for {name}", hint="convert the model as it was loaded")
    return theirs


def _design(metadata: Mapping[str, Any], name: str) -> Layers:
    """Return the properties that formats depend on.  Raises: CheckpointError if the metadata lacks one"""
    architecture = metadata.get("general.architecture")
    layers, heads, kv_heads = (
        metadata.get(f"{architecture}.{key}")
        for key in ("block_count", "attention.head_count", "attention.head_count_kv")
    )
    if type(layers) is not int or type(heads) is not int:
        raise CheckpointError(f"{name} has no {architecture}.block_count", hint="it may be a part of a model")
    group = heads // kv_heads if type(kv_heads) is int and kv_heads > 0 else 1
    return Layers(layers, group, architecture == "falcon", metadata.get(f"{architecture}.expert_count"))


def _targets(
    parts: Mapping[str, Part], recipe: Recipe, layers: Layers, importance: Importance | None
) -> dict[str, Target]:
    shapes = {name: part.shape for name, part in parts.items()}
    formats = formats_of(recipe, shapes, layers, importance=importance is not None)
    found = importance or {}
    return {
        name: Target(formats[name], part.shape, _fitting(part, formats[name]), found.get(name), finite=True)
        for name, part in parts.items()
    }


def _fitting(part: Part, format: str) -> Callable[[], Weights]:
    """Return a function that returns blocks only if they are of this format."""
    shape, get = part

    def fitting() -> Weights:
        weights = get()
        return weights if weights.format in (None, format) else Floats(weights.floats().reshape(shape))

    return fitting


def _of_file(file: GGUF, name: str, format: str, importance: Array | None) -> Target:
    def get() -> Weights:
        matrix = file.matrix(name)
        return weights_of(matrix if matrix is not None and matrix.format == format else file[name])

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
