"""Load a model: find its files, read the config, build it without memory, fill it, and quantise it.

`FromPretrained` takes a name, `read` a folder, `assemble` the tensors of any checkpoint; a GGUF file, whose tensors are
read one at a time after the model is built, calls `build` and `fill`. A class states what is special about its
checkpoints by the methods of PretrainedModel that are called here: `read_folder`, `parts_of`, `tied_weights`,
`config_with`, `is_superfluous`, `adapt` and `check_weights`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from tallow import devices, dtypes
from tallow.errors import CheckpointError, TallowWarning, warn
from tallow.hub import local_folder
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.models.config import CONFIG
from tallow.models.foreign_names import unknown_arguments
from tallow.models.loading_report import LoadingReport, report_of
from tallow.models.quantize import check_quant
from tallow.models.ties import are_equal, tied_values
from tallow.nn.block_layers import arrange_blocks, put_block_layers
from tallow.nn.module import Module

if TYPE_CHECKING:  # the classes call what is here
    from tallow.models.pretrained import PretrainedModel

M = TypeVar("M", bound="PretrainedModel")
Part = TypeVar("Part", bound=Module)

LEGACY = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of TensorFlow's checkpoints


class FromPretrained:
    """Gives a class `from_pretrained`, which finds the files of a model; the class reads them by `read_path`.

    Attributes:
        locate: finds a folder by its name: `local_folder`, or `local_model`, which finds GGUF files too.
        load_options: the names of further arguments, which `read_path` takes.
    """

    locate: ClassVar[Callable[..., Path]] = staticmethod(local_folder)
    load_options: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        quant: str | None = None,
        revision: str | None = None,
        token: str | None = None,
        strict: bool = False,
        **options: Any,
    ) -> Self:
        """Load a local folder or a repository of the Hub, with its weights in one file or in shards.

        Args:
            name: a folder, or `owner/repository`.
            dtype: of the parameters; None means as in the file, or with `quant` float32.
            quant: quantise the matrices, as `PretrainedModel.quantize`; None leaves them in floats.
            revision, token: of the Hub repository, as in `tallow.hub.local_folder`.
            strict: refuse a `config.json` with entries that the model does not know. By default a TallowWarning names
                them, and only those that are known to change the output of other models are refused.
            options: of the class, such as the labels of an ImageClassifier.

        Raises:  CheckpointError for a folder of another kind, or that lists every missing, unexpected or wrongly shaped
                 tensor; ArgumentTypeError for an option that the class does not have; TokenizerError,
                 MissingPackageError, HubError; as `PretrainedModel.quantize`
        """
        if unknown := options.keys() - cls.load_options:
            raise unknown_arguments(f"{cls.__name__}.from_pretrained", unknown)
        check_quant(quant, device)  # before a download
        return cls.read_path(cls.locate(name, revision=revision, token=token), dtype, device, quant, strict, **options)

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        """Load what `locate` has found; arguments and errors as `from_pretrained`."""
        raise NotImplementedError


def read(
    kind: type[M],
    folder: Path,
    dtype: Any,
    device: Any,
    quant: str | None,
    strict: bool,
    tensors: Mapping[str, Any] | None = None,
    **parts: bool,
) -> M:
    """Load a folder of this machine.

    Args:
        tensors: the weights, where they are not in the folder.
        others: as `PretrainedModel.from_pretrained` and `assemble`.

    Raises:  as `PretrainedModel.from_pretrained`
    """
    config = kind.config_class.from_json(folder / CONFIG, strict=strict)
    tensors = kind.read_folder(folder) if tensors is None else tensors
    model = assemble(kind, config, tensors, dtype, device, str(folder), parts)
    model.folder = folder
    return quantized(model, quant, dtype)


def quantized(model: Part, quant: str | None, dtype: Any) -> Part:
    """Quantise a model in place, unless `quant` is None; as `PretrainedModel.quantize`."""
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
    """Build a model from the tensors of a checkpoint; arguments and errors as `PretrainedModel.assemble` and `fill`."""
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

    Args:  tensors: by name; None for those that are read later, of which none are tied to each other

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
) -> M:
    """Give a model without memory the arrays of a checkpoint, which are converted and moved only where necessary.

    Args:
        tensors: by the model's names. A matrix of blocks stays as it is.

    Raises:  CheckpointError that lists everything that does not fit
    """
    matrices = {name: each for name, each in tensors.items() if isinstance(each, BlockMatrix)}
    plain = {name: each for name, each in tensors.items() if name not in matrices}
    tensors = plain | put_block_layers(model, matrices, device)
    own = model.state_dict(keep_vars=True)
    needed = {name: each for name, each in tensors.items() if name in own or not model.is_superfluous(name)}
    adapted = model.adapt(needed)
    if tensors and not adapted.keys() & own.keys():  # a list of all names would hide that nothing fits
        raise CheckpointError(
            f"{source} has no weights of a {type(model).__name__}: none of its {len(tensors)} tensors, such as "
            f"{min(tensors)!r:.80}, has a name of the model",
            hint=f"use the {CONFIG} and the weights of one model",
        )
    take(model, adapted, dtype, device, source)
    model.check_weights(source)
    arrange_blocks(model)
    return model


def take(module: Part, tensors: Mapping[str, Any], dtype: Any, device: Any, source: str) -> Part:
    """Give a module of any class, without memory, its tensors, on a device and in a dtype; None leaves it.

    Raises:  CheckpointError
    """
    module.load_state_dict(tensors, assign=True, source=source)
    names = getattr(getattr(module, "config", None), "in_float32", ())
    exact = [(buffer, buffer.array) for name, buffer in module.named_buffers() if name.endswith(names)]
    module = module.to(devices.chosen(device), dtype=None if dtype is None else dtypes.as_dtype(dtype)).eval()
    for buffer, array in exact:
        buffer.array = devices.move(dtypes.cast(array, dtypes.float32), buffer.device)
    return module
