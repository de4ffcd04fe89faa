"""Whole models in Keras' `.keras` files, which are zip archives:

    metadata.json       the versions that wrote the file
    config.json         the model; under "compile_config" the arguments of `compile`
    model.weights.h5    the weights and the optimizer's state; see `paths` and `optimizer_state`

An optimizer of `tallow.optim`, which Keras lacks, is stored in an additional `optimizer.safetensors`. Files of earlier
tallow versions hold `model.weights.safetensors`, and can be read.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tallow import __version__
from tallow.errors import ArgumentError, CheckpointError
from tallow.io import nested
from tallow.io.atomic import atomic_write
from tallow.io.json_object import parse_object
from tallow.io.safetensors import encode, safe_open
from tallow.io.source import Opened, Path, open_source
from tallow.io.zip_archive import ZipArchive, ZipWriter
from tallow.keras.saving import h5_model, optimizer_state
from tallow.keras.saving.hdf5 import WeightsFile, encode_weights
from tallow.keras.saving.rebuild import KERAS_VERSION, MAX_DEPTH, rebuild
from tallow.keras.saving.weights import check_overwrite, entries, load_parts, tensors_of
from tallow.keras.serialization import serialize_keras_object, to_json

METADATA, CONFIG, WEIGHTS = "metadata.json", "config.json", "model.weights.h5"
EARLIER_FORMAT, EARLIER_VERSION, EARLIER_WEIGHTS = "tallow.keras", 1, "model.weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
ALIGNMENT = 64  # alignment of the entries, so that weights can be memory-mapped views


def save_model(model: Any, filepath: Path, overwrite: bool = True, include_optimizer: bool = True) -> None:
    """Write a model to a `.keras` file, or an `.h5` file of the older format, which Keras can read; an existing file is
    replaced atomically at the end.

    Args:
        include_optimizer: also save the optimizer's state.

    Raises:  MissingPackageError without h5py; ArgumentError for another extension, and for an existing file unless
        `overwrite`; ArgumentTypeError for a lambda, and for an object without `get_config`
    """
    path = os.fspath(filepath)
    if not path.endswith((".keras", *h5_model.EXTENSIONS)):
        raise ArgumentError(f"cannot save a model as {path!r}", hint="use a path that ends in .keras")
    check_overwrite(path, overwrite)
    if not path.endswith(".keras"):
        h5_model.save(model, path, include_optimizer)
        return
    config = serialize_keras_object(model)
    config["build_config"] = _build_config(model)
    config["compile_config"] = model.get_compile_config()
    text = to_json(config, allow_nan=False)
    metadata = {"keras_version": KERAS_VERSION, "tallow_version": __version__}
    keeps_optimizer = include_optimizer and model.optimizer is not None and model.optimizer.built
    is_keras_state = keeps_optimizer and optimizer_state.is_known(model.optimizer)
    weights = encode_weights(entries(model, include_optimizer=is_keras_state), f"saving {path!r}")
    with atomic_write(path) as file, ZipWriter(file, ALIGNMENT) as archive:
        archive.add(METADATA, json.dumps(metadata).encode())
        archive.add(CONFIG, text.encode())
        archive.add(WEIGHTS, weights)
        if keeps_optimizer and not is_keras_state:
            state, tensors = nested.pack({"optimizer": model.optimizer.state_dict()})
            archive.add(OPTIMIZER, *encode(tensors, {"state": state}))


def _build_config(model: Any) -> Any:
    """Return the shapes that the model was built for, in Keras' format."""
    if model.build_shapes is None:
        return None
    args, kwargs = model.build_shapes
    shapes = [*args, *kwargs.values()]
    return serialize_keras_object({"input_shape": shapes[0]} if len(shapes) == 1 else {"shapes_dict": kwargs})


def load_model(filepath: Path, custom_objects: Any = None, compile: bool = True, safe_mode: bool = True) -> Any:
    """Load a model from a `.keras` file, or an `.h5` file of Keras 2 or 3, with its weights, ready to resume training.

    Code in the file is never executed, and no module is imported by a name in it.

    Args:
        custom_objects: your own classes and functions that the model uses, by name.
        compile: compile the model as it was saved, and restore the optimizer's state.
        safe_mode: only True is supported.

    Raises:  OSError when the file cannot be read; CheckpointError for a damaged file, code in it, and weights that do
        not fit; ArgumentError for a class that is neither Keras' nor in `custom_objects`; MissingPackageError without
        h5py
    """
    if not safe_mode:
        raise ArgumentError("load_model: safe_mode must be True, because code in a file is never run")
    if os.path.isdir(filepath):
        raise ArgumentError(f"cannot load {os.fspath(filepath)!r}", hint="use a .keras file")
    if os.fspath(filepath).endswith(h5_model.EXTENSIONS):
        return h5_model.load(filepath, custom_objects, compile)
    archive = ZipArchive(*open_source(filepath))
    for name in (METADATA, CONFIG):
        if name not in archive:
            raise CheckpointError(f"{archive.name} is not a .keras file: {name} is missing")
    metadata = parse_object(archive.read(METADATA).tobytes(), f"{archive.name}: {METADATA}", MAX_DEPTH)
    config = parse_object(archive.read(CONFIG).tobytes(), f"{archive.name}: {CONFIG}", MAX_DEPTH)
    if metadata.get("format") is not None:
        return _load_earlier(archive, metadata, config, custom_objects, compile)
    if WEIGHTS not in archive:
        raise CheckpointError(f"{archive.name} is not a .keras file: {WEIGHTS} is missing")
    file = WeightsFile(archive.read(WEIGHTS), f"{archive.name}: {WEIGHTS}")
    try:
        model = rebuild(f"{archive.name}: {CONFIG}", config, custom_objects, compile, file.stored_bytes())
        load_parts(model, file)
        if compile and model.compiled and model.optimizer is not None:
            if OPTIMIZER in archive:
                _load_optimizer(model, archive)
            elif model.optimizer.built and optimizer_state.is_known(model.optimizer):
                _restore_optimizer(model, file)
    finally:
        file.close()
    return model


def _restore_optimizer(model: Any, file: WeightsFile) -> None:
    datasets = file.datasets("optimizer")
    if datasets:
        arrays = [file.read(datasets[key]) for key in sorted(datasets, key=_number)]
        optimizer_state.restore(model.optimizer, model.trainable_weights, arrays, file.name)


def _number(key: str) -> int:
    return int(key) if key.isdecimal() and len(key) < 10 else -1


# -------------------------------------------------------------------------------------------- files of earlier versions


def _load_earlier(archive: ZipArchive, metadata: Any, config: Any, custom_objects: Any, compile: bool) -> Any:
    if metadata.get("format") != EARLIER_FORMAT or metadata.get("version") != EARLIER_VERSION:
        raise CheckpointError(
            f"{archive.name}: format {metadata.get('format')!r:.80}, version {metadata.get('version')!r:.80}; "
            f"supported are Keras' format, and {EARLIER_FORMAT!r}, version {EARLIER_VERSION}",
            hint="a newer tallow may have written it; update tallow",
        )
    if EARLIER_WEIGHTS not in archive:
        raise CheckpointError(f"{archive.name} is not a .keras file: {EARLIER_WEIGHTS} is missing")
    state = tensors_of(Opened(archive.read(EARLIER_WEIGHTS), f"{archive.name}: {EARLIER_WEIGHTS}"))
    size = sum(tensor.array.nbytes for tensor in state.values())
    model = rebuild(f"{archive.name}: {CONFIG}", _move_modes(config), custom_objects, compile, size)
    model.load_state_dict(state, source=archive.name)
    if compile and model.compiled and OPTIMIZER in archive:
        _load_optimizer(model, archive)
    return model


def _move_modes(config: Any) -> Any:
    """Move the training modes of calls from the arguments to where current files store them, next to the arguments."""
    if isinstance(config, list):
        return [_move_modes(part) for part in config]
    if not isinstance(config, dict):
        return config
    parts = {key: _move_modes(part) for key, part in config.items()}
    kwargs = parts.get("kwargs")
    if config.keys() == {"args", "kwargs"} and isinstance(kwargs, dict) and "training" in kwargs:
        parts["training"] = kwargs.pop("training")
    return parts


def _load_optimizer(model: Any, archive: ZipArchive) -> None:
    with safe_open(Opened(archive.read(OPTIMIZER), f"{archive.name}: {OPTIMIZER}")) as file:
        text = file.metadata().get("state", "").encode()
        state = nested.unpack(text, file.name, lambda name: file.get_tensor(name).clone())
        try:
            model.optimizer.load_state_dict(state["optimizer"])
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{file.name} is not the state of an optimizer: {error!r}") from error
