"""Load models from GGUF files (llama.cpp), for the architectures in tallow.models.gguf.names.

On the CPU, matrices that are quantised or in half precision stay as they are in the mapped file, in every format. On a
GPU, quantised ones become codes and scales in arrays of their own (tallow.kernels.quantized.grouped_matrix), but for
IQ1 to IQ3. Other tensors are converted to one dtype, one at a time, or viewed if they have it.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tallow import dtypes, models
from tallow.core.tensor import Tensor, wrap
from tallow.errors import CheckpointError, ShapeError
from tallow.io.gguf import GGUF
from tallow.io.source import Source
from tallow.kernels.quantized.block_matrix import HALF_FORMATS, BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.models import loading
from tallow.models.causal_lm import CausalLM
from tallow.models.gguf.config import design_of
from tallow.models.gguf.metadata import Design
from tallow.models.gguf.names import LAYER, SETTINGS, GGUFNames, of_experts, rows_by_group
from tallow.models.pretrained import PretrainedModel
from tallow.nn.block_layers import has_kernel, multiplies_blocks
from tallow.text.tokenizer import Tokenizer

HINT = "see what the file holds: tallow inspect FILE"
SHOWN = 10  # tensors listed in an error


def load(
    source: Source | GGUF,
    dtype: Any = None,
    device: Any = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Load the model of a GGUF file: a language model, with the file's tokenizer for its `tokenizer`, `chat` and
    `generate_text`; or an encoder.

    Args:
        source: the file, or one that is open already.
        dtype: of the weights, whatever it is in the file; None means float32, and matrices that stay quantised, or on
            the CPU in half precision, for inference (tallow.nn.block_layers).
        progress: called with the number of tensors read and the number of all tensors.

    Raises:  CheckpointError for an unsupported architecture, a malformed file, weights that do not fit, and quantised
             weights to convert that are infinite or NaN. Those that stay in the file are not read here: a model that
             has some gives logits of NaN, which `generate` refuses.
    """
    file = source if isinstance(source, GGUF) else GGUF(source)
    design = design_of(file)
    file = file if design.file is None else design.file
    _check_layers(file, design)
    tensors = [name for name in file if not _is_further(name, design)]
    names = [own for name in tensors if (own := design.names.from_gguf(name)) is not None]
    held = dict.fromkeys(name for own in names for name in _owned(own, design))
    try:
        model, _, report = loading.build(getattr(models, design.model), design.config, held, design.parts)
    except ShapeError as error:
        raise CheckpointError(f"{file.name}: {error}", hint=HINT) from error
    _check_tensors(file, design, model)
    target = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    keeps_blocks = dtype is None and multiplies_blocks(device)
    state: dict[str, Tensor | BlockMatrix] = {}
    for done, name in enumerate(tensors, 1):
        own = design.names.from_gguf(name)
        if own is not None:
            matrix = _matrix(file, name) if keeps_blocks else None
            if matrix is None:
                tensor = _weight(file, name, own, design, target)
                owned = _owned(own, design)
                state |= zip(owned, tensor.unbind(0) if "*" in own else tensor.chunk(len(owned)), strict=True)
            else:
                rows = _rows(own, design)
                chosen = matrix.blocks if rows is None else matrix.blocks[rows]
                owned = _owned(own, design)
                each = chosen.reshape(len(owned), -1, chosen.shape[1])
                state |= {part: BlockMatrix(each[i], matrix.format) for i, part in enumerate(owned)}
        if progress is not None:
            progress(done, len(tensors))
    model = loading.fill(model, state, None, device, file.name)
    model.loading_report = report
    model.folder = Path(source) if isinstance(source, str | os.PathLike) else None
    return model


def language_model(file: GGUF) -> CausalLM:
    """Load the language model of a file that may be in memory, with its tokenizer.

    Raises:  CheckpointError for a model that writes no texts, and as `load`; TokenizerError, MissingPackageError
    """
    model = load(file)
    if not isinstance(model, CausalLM):
        raise CheckpointError(
            f"{file.name} is a {type(model).__name__}, which does not write texts", hint="choose a language model"
        )
    model.tokenizer = Tokenizer.from_gguf(file)
    return model


def _is_further(name: str, design: Design) -> bool:
    """Return whether a tensor is part of the layers that predict further tokens."""
    _, _, rest = name.partition(f"{LAYER}.")
    number = rest.partition(".")[0]
    return design.further > 0 and number.isdecimal() and int(number) >= design.config.num_hidden_layers


def _matrix(file: GGUF, name: str) -> BlockMatrix | None:
    """Return a matrix as it is in the file; None for a tensor of float32 or of other dims.

    None too for half precision without a kernel: each product would convert the whole matrix, which takes longer than
    the product.
    """
    info = file.info(name)
    if info.type not in HALF_FORMATS or len(info.shape) < 2:
        return file.matrix(name)
    blocks = file.get_blocks(name)
    if 0 in info.shape or not blocks.view(HALF_FORMATS[info.type]).flags.aligned:  # the kernel would copy each time
        return None
    matrix = BlockMatrix(blocks.reshape(prod(info.shape[:-1]), -1), info.type)
    return matrix if has_kernel(matrix) else None


def _check_layers(file: GGUF, design: Design) -> None:
    """Raise CheckpointError, before a model is built, if the file has too few tensors for the layers of the config, or
    other experts."""
    layers = design.config.num_hidden_layers
    each = (
        len(design.names.inner) if getattr(design.config, "layer_shapes", None) is None else 1
    )  # layers of several kinds
    if layers * each > len(file):
        raise CheckpointError(
            f"{file.name}: {design.names.architecture}.block_count is {layers}, and there are only {len(file)} tensors",
            hint=HINT,
        )
    for name in file:
        own, shape = design.names.from_gguf(name), file.info(name).shape
        dims = 2 if name.endswith(".bias") else 3
        count = getattr(design.config, "num_experts", 0)
        if own is not None and "*" in own and (len(shape) != dims or 0 in shape or shape[0] != count):
            raise CheckpointError(
                f"{file.name}: tensor {name!r:.200} has the shape {tuple(shape)}; "
                f"{design.names.architecture}.expert_count is {design.config.num_experts}",
                hint=HINT,
            )


def _owned(own: str, design: Design) -> list[str]:
    """Return the names of the state dict for a tensor of the file: one, or one for each part or expert."""
    module = design.names.parts(own)[1]
    if module in design.names.joined:
        return [own.replace(module, part) for part in design.names.joined[module]]
    return of_experts(own, getattr(design.config, "num_experts", 0))


def _check_tensors(file: GGUF, design: Design, model: PretrainedModel) -> None:
    """Raise CheckpointError unless the file has exactly the tensors of the model, with their shapes."""
    names, own = design.names, model.state_dict(keep_vars=True)
    present, problems = set(), []
    for name in file:
        if name in SETTINGS or _is_further(name, design):
            continue
        ours, shape = names.from_gguf(name), tuple(file.info(name).shape)
        owned = [] if ours is None else _owned(ours, design)
        if ours is None or not own.keys() >= {*owned}:
            problems.append(f"unknown tensor {name!r:.200}")
            continue
        present.update(owned)
        expected = tuple(own[owned[0]].shape)
        if names.parts(ours)[1] in names.transposed:
            expected = expected[::-1]
        if names.parts(ours)[1] in names.vectors:
            expected = expected[1:]
        if names.parts(ours)[1] in names.channels and len(expected) == 3:
            expected = expected[::2]
        if names.parts(ours)[1] in names.joined:
            expected = (len(owned) * expected[0], *expected[1:])
        if _is_spread(ours, names) and prod(shape) == prod(expected):
            expected = shape
        if "*" in ours:
            expected = (len(owned), *expected)
        if shape != expected:
            problems.append(f"tensor {name!r:.200} has the shape {shape}; the metadata gives {expected}")
    missing = dict.fromkeys(names.to_gguf(ours) or ours for ours in own if ours not in present)
    problems += [f"no tensor {theirs!r}" for theirs in missing]
    if problems:
        more = [f"{len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        lines = "".join(f"\n  {problem}" for problem in problems[:SHOWN] + more)
        raise CheckpointError(f"{file.name} does not fit a {design.model}:{lines}", hint=HINT)


def _weight(file: GGUF, name: str, own: str, design: Design, dtype: dtypes.dtype) -> Tensor:
    """Return a tensor of the file in the form of the model's state dict."""
    names = design.names
    module = names.parts(own)[1]
    stored = file[name]
    if file.info(name).type in FORMATS and not np.isfinite(stored.array).all():
        raise CheckpointError(
            f"{file.name}: tensor {name!r:.200} has scales that are infinite or NaN",
            hint="list all such tensors, and download the file again: tallow inspect --check FILE",
        )
    tensor = stored.to(dtypes.float32 if own.endswith(design.config.in_float32) else dtype)
    if (rows := _rows(own, design)) is not None:
        tensor = wrap(tensor.array[rows])
    if module in names.transposed:
        tensor = tensor.T if tensor.ndim == 2 else tensor
    if module in names.vectors:
        tensor = tensor.unsqueeze(0)
    if module in names.channels and tensor.ndim == 2:
        tensor = tensor.unsqueeze(1)
    if _is_spread(own, names):
        tensor, stored = tensor.reshape(-1), stored.reshape(-1)
    if any(own.endswith(f".{name}") for name in names.decays):
        tensor = (-stored.float()).log().to(dtype)
    if names.norm_offset and own.endswith("norm.weight") and module not in names.plain_norms:
        tensor = (stored.float() - names.norm_offset).to(dtype)
    return tensor


def _is_spread(own: str, names: GGUFNames) -> bool:
    return any(own.endswith(f".{name}") for name in names.spread)


def _rows(own: str, design: Design) -> np.ndarray[Any, Any] | None:
    """Return the row in the file of each row of a tensor; None if the order is the same."""
    if design.names.parts(own)[1] not in design.names.grouped:
        return None
    config = design.config
    return (
        rows_by_group(config.num_attention_heads, config.kv_heads, config.head_width) if config.kv_heads > 1 else None
    )
