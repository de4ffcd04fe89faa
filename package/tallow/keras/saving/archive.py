"""Whole models in `.keras` files, which are Keras' own: a zip archive of

    metadata.json       who wrote it
    config.json         the model; under "compile_config" what `compile` was given
    model.weights.h5    the weights, and where the optimizer stands; see `paths` and `optimizer_state`

An optimizer of `tallow.optim`, which Keras does not have, is kept in `optimizer.safetensors` beside them. Files of
earlier versions of tallow hold `model.weights.safetensors`, and are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallow import __version__
from tallow.errors import ArgumentError, CheckpointError, TallowError
from tallow.io import nested
from tallow.io.atomic import atomic_write
from tallow.io.json_object import parse_object
from tallow.io.safetensors import encode, safe_open
from tallow.io.source import Opened, Path, open_source
from tallow.io.zip_archive import ZipArchive, ZipWriter
from tallow.keras.layers.limits import limited_weights
from tallow.keras.saving import optimizer_state
from tallow.keras.saving.hdf5 import WeightsFile, encoded
from tallow.keras.saving.weights import check_overwrite, entries, load_parts, tensors_of
from tallow.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    serialize_keras_object,
    to_json,
)
from tallow.keras.trainer import Trainer

KERAS_VERSION = "3.15.1"  # whose files these are
METADATA, CONFIG, WEIGHTS = "metadata.json", "config.json", "model.weights.h5"
EARLIER_FORMAT, EARLIER_VERSION, EARLIER_WEIGHTS = "tallow.keras", 1, "model.weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
ALIGNMENT = 64  # of the entries, so that the weights can be viewed where they are
FREE_BYTES = 2**20  # that a description may ask for beyond twice its weights, so that small misfits are all told
MAX_DEPTH = 200  # of a config's lists and objects: a dozen for each model within a model


def save_model(model: Any, filepath: Path, overwrite: bool = True, include_optimizer: bool = True) -> None:
    """Write a model to a `.keras` file, which is replaced in one step at the end. Keras reads it as well.

    Args:
        include_optimizer: save where its optimizer stands, too.

    Raises:  MissingPackageError without h5py; ArgumentError for another extension, and for an existing file unless
        `overwrite`; ArgumentTypeError for a lambda, and for what has no `get_config`
    """
    path = os.fspath(filepath)
    if not path.endswith(".keras"):
        raise ArgumentError(f"cannot save a model as {path!r}", mend="name it model.keras")
    check_overwrite(path, overwrite)
    config = serialize_keras_object(model)
    config["build_config"] = _build_config(model)
    config["compile_config"] = model.get_compile_config()
    text = to_json(config, allow_nan=False)
    metadata = {"keras_version": KERAS_VERSION, "tallow_version": __version__}
    keeps_optimizer = include_optimizer and model.optimizer is not None and model.optimizer.built
    is_known = keeps_optimizer and optimizer_state.is_known(model.optimizer)
    weights = encoded(entries(model, include_optimizer=is_known), f"saving {path!r}")
    with atomic_write(path) as file, ZipWriter(file, ALIGNMENT) as archive:
        archive.add(METADATA, json.dumps(metadata).encode())
        archive.add(CONFIG, text.encode())
        archive.add(WEIGHTS, weights)
        if keeps_optimizer and not is_known:
            state, tensors = nested.pack({"optimizer": model.optimizer.state_dict()})
            archive.add(OPTIMIZER, *encode(tensors, {"state": state}))


def _build_config(model: Any) -> Any:
    """The shapes that the model was built for, as Keras writes them."""
    if model.build_shapes is None:
        return None
    args, kwargs = model.build_shapes
    shapes = [*args, *kwargs.values()]
    return serialize_keras_object({"input_shape": shapes[0]} if len(shapes) == 1 else {"shapes_dict": kwargs})


def load_model(filepath: Path, custom_objects: Any = None, compile: bool = True, safe_mode: bool = True) -> Any:
    """The model of a `.keras` file: rebuilt by its own constructors, with its weights, ready to go on training.

    No code in the file is run, and no module is imported by a name in it.

    Args:
        custom_objects: classes and functions of your own that the model is made of, by name.
        compile: compile it as it was, and let its optimizer go on from where it was.
        safe_mode: only True is taken.

    Raises:  OSError when the file cannot be read; CheckpointError for a damaged file, code in it, and weights that do
        not fit; ArgumentError for a class that is neither Keras' nor in `custom_objects`; MissingPackageError without
        h5py
    """
    if not safe_mode:
        raise ArgumentError("load_model: code in a file is never run, so safe_mode must be True")
    if os.path.isdir(filepath) or os.fspath(filepath).endswith((".h5", ".hdf5")):
        raise ArgumentError(f"cannot load {os.fspath(filepath)!r}", mend="a model is saved as model.keras")
    archive = ZipArchive(*open_source(filepath))
    for name in (METADATA, CONFIG):
        if name not in archive:
            raise CheckpointError(f"{archive.name} is no .keras file: it has no {name}")
    metadata = parse_object(archive.read(METADATA).tobytes(), f"{archive.name}: {METADATA}", MAX_DEPTH)
    config = parse_object(archive.read(CONFIG).tobytes(), f"{archive.name}: {CONFIG}", MAX_DEPTH)
    if metadata.get("format") is not None:
        return _load_earlier(archive, metadata, config, custom_objects, compile)
    if WEIGHTS not in archive:
        raise CheckpointError(f"{archive.name} is no .keras file: it has no {WEIGHTS}")
    file = WeightsFile(archive.read(WEIGHTS), f"{archive.name}: {WEIGHTS}")
    try:
        model = _rebuilt(archive, config, custom_objects, compile, file.stored_bytes())
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
    found = file.datasets("optimizer")
    if found:
        given = [file.read(found[key]) for key in sorted(found, key=_number)]
        optimizer_state.restore(model.optimizer, model.trainable_weights, given, file.name)


def _number(key: str) -> int:
    return int(key) if key.isdecimal() else -1


def _rebuilt(archive: ZipArchive, config: dict[str, Any], custom_objects: Any, compile: bool, size: int) -> Any:
    """The model of a description, built and compiled, with weights newly drawn, of which there are `size` bytes."""
    with custom_object_scope(custom_objects or {}), _described_by(f"{archive.name}: {CONFIG}"):
        with limited_weights(2 * size + FREE_BYTES):
            keys = ("module", "class_name", "config", "registered_name")
            model = deserialize_keras_object({key: config.get(key) for key in keys} | {"config": config["config"]})
            if not isinstance(model, Trainer):
                raise CheckpointError(f"the file describes a {type(model).__name__}, which is not a model")
            if config.get("build_config") and not all(layer.built for layer in model.flat_layers()):
                _build(model, config["build_config"])
        if compile and config.get("compile_config") is not None:
            model.compile_from_config(config["compile_config"])
    return model


def _build(model: Any, config: Any) -> None:
    if isinstance(config, list):  # of earlier versions
        model.build(*config[0], **config[1])
    elif config.get("shapes_dict"):
        model.build(**config["shapes_dict"])
    elif config.get("input_shape"):
        model.build(config["input_shape"])


@contextmanager
def _described_by(name: str) -> Iterator[None]:
    """Turns what a description that nobody has vetted can go wrong by into an error that names it."""
    try:
        yield
    except TallowError:
        raise
    except (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{name} describes no model: {type(error).__name__}: {error}", mend="save the model again"
        ) from error


# -------------------------------------------------------------------------------------------- files of earlier versions


def _load_earlier(archive: ZipArchive, metadata: Any, config: Any, custom_objects: Any, compile: bool) -> Any:
    if metadata.get("format") != EARLIER_FORMAT or metadata.get("version") != EARLIER_VERSION:
        raise CheckpointError(
            f"{archive.name}: format {metadata.get('format')!r:.80}, version {metadata.get('version')!r:.80}; "
            f"Keras' format, and {EARLIER_FORMAT!r}, version {EARLIER_VERSION}, are read",
            mend="a newer tallow may have written it",
        )
    if EARLIER_WEIGHTS not in archive:
        raise CheckpointError(f"{archive.name} is no .keras file: it has no {EARLIER_WEIGHTS}")
    state = tensors_of(Opened(archive.read(EARLIER_WEIGHTS), f"{archive.name}: {EARLIER_WEIGHTS}"))
    size = sum(tensor.array.nbytes for tensor in state.values())
    model = _rebuilt(archive, _with_modes(config), custom_objects, compile, size)
    model.load_state_dict(state, source=archive.name)
    if compile and model.compiled and OPTIMIZER in archive:
        _load_optimizer(model, archive)
    return model


def _with_modes(config: Any) -> Any:
    """The description with the modes that calls asked for where they are now, beside the arguments."""
    if isinstance(config, list):
        return [_with_modes(part) for part in config]
    if not isinstance(config, dict):
        return config
    parts = {key: _with_modes(part) for key, part in config.items()}
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
