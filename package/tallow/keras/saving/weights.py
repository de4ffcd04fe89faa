"""Weights alone, in files: `.weights.h5` as Keras has them, or `.safetensors`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

from tallow.errors import ArgumentError, CheckpointError
from tallow.io.atomic import atomic_write
from tallow.io.safetensors import safe_open, save
from tallow.io.source import Path, Source, open_source
from tallow.keras.saving import legacy_h5, optimizer_state
from tallow.keras.saving.hdf5 import Entry, WeightsFile, assign, encoded
from tallow.keras.saving.paths import Part, parts
from tallow.tensor import Tensor

OPTIMIZER = "optimizer"  # the group of its state


def save_weights(model: Any, filepath: Path, overwrite: bool = True) -> None:
    """Write a model's weights: to a `.weights.h5` file as Keras does, or its `state_dict` to a `.safetensors` file.

    Raises:  ArgumentError for another extension, and for an existing file unless `overwrite`; MissingPackageError for
        HDF5 without h5py
    """
    path = _checked(filepath)
    check_overwrite(path, overwrite)
    if path.endswith(".safetensors"):
        save(model.state_dict(), path)
        return
    data = encoded(entries(model), f"saving {path!r}")
    with atomic_write(path) as file:
        file.write(data)


def load_weights(model: Any, filepath: Path, skip_mismatch: bool = False) -> None:
    """Read them into a model that is built; those of a `.keras` file as well, and of Keras' older `.h5` files.

    Args:
        skip_mismatch: leave what the file does not have, or has in another shape, as it is.

    Raises:  CheckpointError with every name that is missing, unexpected or of another shape; MissingPackageError for
        HDF5 without h5py
    """
    path = _checked(filepath, (".weights.h5", ".h5", ".hdf5", ".safetensors"))
    if not all(layer.built for layer in model.flat_layers()):
        raise ArgumentError(
            f"{model.name} has no weights yet to load into", mend="call it with a batch, or model.build(input_shape)"
        )
    if path.endswith(".safetensors"):
        state = tensors_of(path)
        if skip_mismatch:
            own = model.state_dict()
            state = {name: t for name, t in state.items() if name in own and own[name].shape == t.shape}
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
    """What Keras' file has of a model."""
    for part in parts(model):
        if part.weights or part.name:
            yield part.path, part.name, list(part.weights)
    if include_optimizer:
        yield OPTIMIZER, model.optimizer.name, optimizer_state.arrays(model.optimizer, model.trainable_weights)


def load_parts(model: Any, file: WeightsFile, skip_mismatch: bool = False) -> None:
    """Take the weights of a file: all of them or, on an error, none.

    Raises:  CheckpointError with everything that does not fit
    """
    problems: list[str] = []
    pairs: list[tuple[Tensor, Any]] = []
    unused = {path for path in file.paths() if not path.startswith(f"{OPTIMIZER}/")}
    for part in parts(model):
        found = file.datasets(part.path)
        unused -= {dataset.name.lstrip("/") for dataset in found.values()}
        fits = list(_fitting(part, found, problems))
        pairs += fits
    problems += [f"  unexpected   {path}" for path in sorted(unused)]
    if problems and not skip_mismatch:
        raise CheckpointError("\n".join([f"{file.name} does not fit {model.name}", *problems]))
    if problems:
        warnings.warn(f"{file.name}: {len(problems)} weights do not fit {model.name} and are left out", stacklevel=4)
    assign([(weight, file.read(dataset)) for weight, dataset in pairs])


def _fitting(part: Part, found: dict[str, Any], problems: list[str]) -> Iterator[tuple[Tensor, Any]]:
    for index, weight in enumerate(part.weights):
        where = f"{part.path}/vars/{index} ({part.name}: {getattr(weight, 'name', 'weight')})"
        dataset = found.pop(str(index), None)
        if dataset is None:
            problems.append(f"  missing      {where}")
        elif tuple(dataset.shape) != tuple(weight.shape):
            problems.append(f"  wrong shape  {where}: file {tuple(dataset.shape)}, model {tuple(weight.shape)}")
        else:
            yield weight, dataset
    problems += [f"  unexpected   {part.path}/vars/{key}" for key in found]


def tensors_of(source: Source) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    with safe_open(source) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def _checked(filepath: Path, extensions: tuple[str, ...] = (".weights.h5", ".safetensors")) -> str:
    path = os.fspath(filepath)
    if not path.endswith(extensions):
        raise ArgumentError(
            f"weights are not kept as {path!r}", mend="name the file model.weights.h5, or model.weights.safetensors"
        )
    return path


def check_overwrite(path: str, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise ArgumentError(f"{path!r} exists", mend="pass overwrite=True")
