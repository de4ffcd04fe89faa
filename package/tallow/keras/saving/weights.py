"""Save and load weights: Keras' `.weights.h5` files, and `.safetensors` files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError, warn
from tallow.io.atomic import atomic_write
from tallow.io.safetensors import safe_open, save
from tallow.io.source import Path, Source, open_source
from tallow.keras.saving import legacy_h5, optimizer_state
from tallow.keras.saving.hdf5 import Entry, WeightsFile, assign, encode_weights
from tallow.keras.saving.paths import Part, parts

OPTIMIZER = "optimizer"  # the group of the optimizer's state


def save_weights(model: Any, filepath: Path, overwrite: bool = True) -> None:
    """Write a model's weights to a `.weights.h5` file as Keras does, or its `state_dict` to a `.safetensors` file.

    Raises:  ArgumentError for another extension, and for an existing file unless `overwrite`; MissingPackageError for
        HDF5 without h5py
    """
    path = _check_extension(filepath)
    check_overwrite(path, overwrite)
    if path.endswith(".safetensors"):
        save(model.state_dict(), path)
        return
    data = encode_weights(entries(model), f"saving {path!r}")
    with atomic_write(path) as file:
        file.write(data)


def load_weights(model: Any, filepath: Path, skip_mismatch: bool = False) -> None:
    """Load weights into a built model, also from a `.keras` file or Keras' older `.h5` files.

    Args:
        skip_mismatch: skip weights that are missing in the file or have another shape.

    Raises:  CheckpointError that lists all missing, unexpected and mismatched weights; MissingPackageError for HDF5
        without h5py
    """
    path = _check_extension(filepath, (".weights.h5", ".h5", ".hdf5", ".safetensors"))
    if not all(layer.built for layer in model.flat_layers()):
        raise ArgumentError(
            f"{model.name} is not built, so weights cannot be loaded",
            hint="call it with a batch, or call model.build(input_shape)",
        )
    if path.endswith(".safetensors"):
        state = tensors_of(path)
        if skip_mismatch:
            current = model.state_dict()
            state = {name: t for name, t in state.items() if name in current and current[name].shape == t.shape}
        model.load_state_dict(state, strict=not skip_mismatch, source=path)
        return
    file = WeightsFile(*open_source(path))
    try:
        if legacy_h5.is_legacy(file):
            legacy_h5.load(model, file, skip_mismatch)
        else:
            load_parts(model, file, skip_mismatch)
    finally:
        file.close()


def entries(model: Any, include_optimizer: bool = False) -> Iterator[Entry]:
    """Yield the entries of a model in Keras' file."""
    for part in parts(model):
        if part.weights or part.name:
            yield part.path, part.name, list(part.weights)
    if include_optimizer:
        yield OPTIMIZER, model.optimizer.name, optimizer_state.arrays(model.optimizer, model.trainable_weights)


def load_parts(model: Any, file: WeightsFile, skip_mismatch: bool = False) -> None:
    """Load the weights of a file; on an error, none changes.

    Raises:  CheckpointError that lists everything that does not fit
    """
    problems: list[str] = []
    pairs: list[tuple[Tensor, Any]] = []
    unused = {path for path in file.paths() if not path.startswith(f"{OPTIMIZER}/")}
    for part in parts(model):
        datasets = file.datasets(part.path)
        unused -= {dataset.name.lstrip("/") for dataset in datasets.values()}
        matches = list(_match(part, datasets, problems))
        pairs += matches
    problems += [f"  unexpected   {path}" for path in sorted(unused)]
    if problems and not skip_mismatch:
        raise CheckpointError("\n".join([f"{file.name} does not fit {model.name}", *problems]))
    if problems:
        warn(f"{file.name}: {len(problems)} weights do not fit {model.name} and are skipped")
    assign([(weight, file.read(dataset)) for weight, dataset in pairs])


def _match(part: Part, datasets: dict[str, Any], problems: list[str]) -> Iterator[tuple[Tensor, Any]]:
    for index, weight in enumerate(part.weights):
        where = f"{part.path}/vars/{index} ({part.name}: {getattr(weight, 'name', 'weight')})"
        dataset = datasets.pop(str(index), None)
        if dataset is None:
            problems.append(f"  missing      {where}")
        elif tuple(dataset.shape) != tuple(weight.shape):
            problems.append(f"  wrong shape  {where}: file {tuple(dataset.shape)}, model {tuple(weight.shape)}")
        else:
            yield weight, dataset
    problems += [f"  unexpected   {part.path}/vars/{key}" for key in datasets]


def tensors_of(source: Source) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file."""
    with safe_open(source) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def _check_extension(filepath: Path, extensions: tuple[str, ...] = (".weights.h5", ".safetensors")) -> str:
    path = os.fspath(filepath)
    if not path.endswith(extensions):
        raise ArgumentError(
            f"unsupported file name for weights: {path!r}", hint="use a path that ends in .weights.h5 or .safetensors"
        )
    return path


def check_overwrite(path: str, overwrite: bool) -> None:
    """Raise ArgumentError if the path exists and `overwrite` is False."""
    if not overwrite and os.path.exists(path):
        raise ArgumentError(f"{path!r} already exists", hint="pass overwrite=True")
