"""Load a model: find its files, read the config, build it without memory, fill it, and quantise it.

`load` takes a folder, `assemble` the tensors of any checkpoint, and readers of other files end with `fill`. A class
states what is special about its checkpoints by the methods of PretrainedModel that are called here: `from_file`,
`read_folder`, `parts_of`, `tied_weights`, `config_with`, `is_superfluous`, `adapt` and `check_weights`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tallow import devices, dtypes
from tallow.errors import CheckpointError, TallowWarning, warn
from tallow.hub import local_folder
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.models.config import CONFIG
from tallow.models.loading_report import LoadingReport, report_of
from tallow.models.quantize import check_quant
from tallow.models.ties import are_equal, tied_values
from tallow.nn.block_layers import arrange_blocks, put_block_layers

if TYPE_CHECKING:  # the classes call what is here
    from tallow.models.pretrained import PretrainedModel

M = TypeVar("M", bound="PretrainedModel")

LEGACY = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of TensorFlow's checkpoints


def load(
    kind: type[M], name: str | Path, dtype: Any, device: Any, quant: str | None, strict: bool, **repository: Any
) -> M:
    """Load a folder, a Hub repository or a file; arguments and errors as `PretrainedModel.from_pretrained`."""
    check_quant(quant, device)  # an error here comes before a download
    path = Path(name).expanduser()
    model = kind.from_file(path, dtype, device) if path.is_file() else None
    if model is None:
        path = local_folder(name, **repository)
        config = kind.config_class.from_json(path / CONFIG, strict=strict)
        model = assemble(kind, config, kind.read_folder(path), dtype, device, str(path), {})
    model.folder = path if path.is_dir() else path.parent
    return model if quant is None else model.quantize(quant, dtype)


def assemble(
    kind: type[M],
    config: Any,
    tensors: Mapping[str, Any],
    dtype: Any,
    device: Any,
    source: str,
    parts: Mapping[str, bool],
) -> M:
    """Build a model from the tensors of a checkpoint; arguments and errors as `PretrainedModel.assemble`."""
    tensors = config.separated(tensors)
    config.check_layers(len(tensors), source)
    model, tensors, report = build(kind, config, tensors, {**kind.parts_of(tensors), **parts})
    model = fill(model, tensors, dtype, device, source)
    model.loading_report = report
    if lost := [name for name in report.unused if name in report.untied.values()]:
        warn(f"{source}: the model has other values for {', '.join(lost)}, which it does not use", TallowWarning)
    return model


def build(
    kind: Callable[..., M], config: Any, tensors: Mapping[str, Any], parts: Mapping[str, bool]
) -> tuple[M, dict[str, Any], LoadingReport]:
    """Build a model without memory, with own layers for tied weights of which the checkpoint holds different values.

    Returns the model, the tensors under its names, each of the tied ones once, and a report.
    """
    model = kind(config, device="meta", **parts)
    held = renamed(model, tensors)
    ties = model.tied_weights
    values, apart = tied_values(ties, held)
    if ties and (untied := model.config_with(apart)) != config:
        model = kind(untied, device="meta", **parts)
    own = model.state_dict(keep_vars=True)
    state = {name: tensor for name, tensor in held.items() if name not in values}
    state |= {name: tensor for name, tensor in values.items() if name in own}
    return model, state, report_of(ties, held, own, apart)


def renamed(model: PretrainedModel, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return all tensors under the model's names, as far as it has them.

    Raises:  CheckpointError for different tensors under one name
    """
    own = {*model.state_dict(keep_vars=True), *model.tied_weights}
    prefix = model.base_model_prefix + "."
    nested = any(name.startswith(prefix) for name in own)
    found: dict[str, Any] = {}
    for name, tensor in tensors.items():
        for old, new in LEGACY.items():
            name = name.replace(old, new)
        if nested and name not in own and prefix + name in own:
            name = prefix + name  # the checkpoint is of the base model
        elif not nested:
            name = name.removeprefix(prefix)
        if name in found and not are_equal(found[name], tensor):
            raise CheckpointError(f"the checkpoint has two tensors for {name}", hint="remove one of them")
        found[name] = tensor
    return found


def fill(
    model: M,
    tensors: Mapping[str, Any],
    dtype: Any,
    device: Any,
    source: str,
    matrices: Mapping[str, BlockMatrix] | None = None,
) -> M:
    """Give a model without memory the arrays of a checkpoint, which are converted and moved only where necessary.

    Args:
        tensors: by the model's names.
        matrices: those that stay quantised, by the model's names.

    Raises:  CheckpointError that lists everything that does not fit
    """
    tensors = {**tensors, **put_block_layers(model, dict(matrices or {}), device)}
    own = model.state_dict(keep_vars=True)
    needed = {name: each for name, each in tensors.items() if name in own or not model.is_superfluous(name)}
    adapted = model.adapt(needed)
    if tensors and not adapted.keys() & own.keys():  # a list of all names would hide that nothing fits
        raise CheckpointError(
            f"{source} has no weights of a {type(model).__name__}: none of its {len(tensors)} tensors, such as "
            f"{min(tensors)!r:.80}, has a name of the model",
            hint=f"use the {CONFIG} and the weights of one model",
        )
    model.load_state_dict(adapted, assign=True, source=source)
    model = model.to(devices.chosen(device), dtype=None if dtype is None else dtypes.as_dtype(dtype)).eval()
    model.check_weights(source)
    arrange_blocks(model)
    return model
