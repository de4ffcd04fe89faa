"""Models in files: `.keras` holds the architecture, the weights and the optimizer; weights alone are safetensors.

A `.keras` file is a zip archive, as Keras':

    metadata.json               {"format": "tallow.keras", "version": 1, "tallow_version": ...}
    config.json                 the model, as Keras writes it; under "compile_config" what `compile` was given
    model.weights.safetensors   its `state_dict`
    optimizer.safetensors       where the optimizer stands, if it has started

Keras itself keeps weights as HDF5, which is not read here; `model.get_weights()` there and `set_weights` here carry
them over, for they have the same order and shapes.
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
from tallow.io.safetensors import encode, safe_open, save
from tallow.io.source import Opened, Path, Source, open_source
from tallow.io.zip_archive import ZipArchive, ZipWriter
from tallow.keras.layers.limits import limited_weights
from tallow.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
    to_json,
)
from tallow.keras.trainer import Trainer
from tallow.tensor import Tensor

FORMAT, VERSION = "tallow.keras", 1
METADATA, CONFIG = "metadata.json", "config.json"
WEIGHTS, OPTIMIZER = "model.weights.safetensors", "optimizer.safetensors"
KERAS_WEIGHTS = "model.weights.h5"
ALIGNMENT = 64  # of the entries, so that the weights can be viewed where they are
FREE_BYTES = 2**20  # that a description may ask for beyond twice its weights, so that small misfits are all told
MAX_DEPTH = 200  # of a config's lists and objects: a dozen for each model within a model


def save_model(model: Any, filepath: Path, overwrite: bool = True, include_optimizer: bool = True) -> None:
    """Write a model to a `.keras` file, which is replaced in one step at the end.

    Args:
        include_optimizer: save where its optimizer stands, too.

    Raises:  ArgumentError for another extension, and for an existing file unless `overwrite`; ArgumentTypeError for a
        lambda, and for what has no `get_config`
    """
    path = os.fspath(filepath)
    if not path.endswith(".keras"):
        raise ArgumentError(f"cannot save a model as {path!r}", mend="name it model.keras")
    _check_overwrite(path, overwrite)
    config = serialize_keras_object(model)
    config["build_config"] = serialize_keras_object(model.build_shapes)
    config["compile_config"] = model.get_compile_config()
    text = to_json(config, allow_nan=False)
    metadata = {"format": FORMAT, "version": VERSION, "tallow_version": __version__}
    with atomic_write(path) as file, ZipWriter(file, ALIGNMENT) as archive:
        archive.add(METADATA, json.dumps(metadata).encode())
        archive.add(CONFIG, text.encode())
        archive.add(WEIGHTS, *encode(model.state_dict()))
        if include_optimizer and model.optimizer is not None and model.optimizer.built:
            state, tensors = nested.pack({"optimizer": model.optimizer.state_dict()})
            archive.add(OPTIMIZER, *encode(tensors, {"state": state}))


def load_model(filepath: Path, custom_objects: Any = None, compile: bool = True, safe_mode: bool = True) -> Any:
    """The model of a `.keras` file: rebuilt by its own constructors, with its weights, ready to go on training.

    No code in the file is run, and no module is imported by a name in it.

    Args:
        custom_objects: classes and functions of your own that the model is made of, by name.
        compile: compile it as it was, and let its optimizer go on from where it was.
        safe_mode: only True is taken.

    Raises:  OSError when the file cannot be read; CheckpointError for a damaged file, code in it, and weights that do
        not fit; ArgumentError for a class that is neither Keras' nor in `custom_objects`
    """
    if not safe_mode:
        raise ArgumentError("load_model: code in a file is never run, so safe_mode must be True")
    if os.path.isdir(filepath) or os.fspath(filepath).endswith((".h5", ".hdf5")):
        raise ArgumentError(f"cannot load {os.fspath(filepath)!r}", mend="a model is saved as model.keras")
    archive = ZipArchive(*open_source(filepath))
    _check_format(archive)
    config = parse_object(archive.read(CONFIG).tobytes(), f"{archive.name}: {CONFIG}", MAX_DEPTH)
    state = _tensors(Opened(archive.read(WEIGHTS), f"{archive.name}: {WEIGHTS}"))
    size = sum(tensor.array.nbytes for tensor in state.values())
    with custom_object_scope(custom_objects or {}), _described_by(f"{archive.name}: {CONFIG}"):
        with limited_weights(2 * size + FREE_BYTES):
            model = _rebuilt(config)
        model.load_state_dict(state, source=archive.name)
        if compile and config.get("compile_config") is not None:
            model.compile_from_config(config["compile_config"])
    if compile and model.compiled and OPTIMIZER in archive:
        _load_optimizer(model, Opened(archive.read(OPTIMIZER), f"{archive.name}: {OPTIMIZER}"))
    return model


def _check_format(archive: ZipArchive) -> None:
    if KERAS_WEIGHTS in archive:
        raise CheckpointError(
            f"{archive.name} is a file of Keras, with its weights as HDF5, which is not read",
            mend="in Keras: np.savez('weights.npz', *model.get_weights()); here, for the same layers: "
            "model.set_weights(list(np.load('weights.npz').values()))",
        )
    for name in (METADATA, CONFIG, WEIGHTS):
        if name not in archive:
            raise CheckpointError(f"{archive.name} is no .keras file: it has no {name}")
    metadata = parse_object(archive.read(METADATA).tobytes(), f"{archive.name}: {METADATA}", MAX_DEPTH)
    if metadata.get("format") != FORMAT or metadata.get("version") != VERSION:
        raise CheckpointError(
            f"{archive.name}: format {metadata.get('format')!r:.80}, version {metadata.get('version')!r:.80}; "
            f"{FORMAT!r}, version {VERSION} is read",
            mend="a newer tallow may have written it",
        )


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


def _rebuilt(config: dict[str, Any]) -> Any:
    """The model of a description, built, with weights newly drawn."""
    model = deserialize_keras_object({key: config[key] for key in ("class_name", "config", "registered_name")})
    if not isinstance(model, Trainer):
        raise CheckpointError(f"the file describes a {type(model).__name__}, which is not a model")
    shapes = config.get("build_config")
    if shapes and not all(layer.built for layer in model.flat_layers()):
        model.build(*shapes[0], **shapes[1])
    return model


def _tensors(source: Source) -> dict[str, Tensor]:
    with safe_open(source) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def _load_optimizer(model: Any, source: Opened) -> None:
    with safe_open(source) as file:
        text = file.metadata().get("state", "").encode()
        state = nested.unpack(text, file.name, lambda name: file.get_tensor(name).clone())
        try:
            model.optimizer.load_state_dict(state["optimizer"])
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{file.name} is not the state of an optimizer: {error!r}") from error


# ------------------------------------------------------------------------------------------------------------ weights


def save_weights(model: Any, filepath: Path, overwrite: bool = True) -> None:
    """Write a model's `state_dict` to a safetensors file.

    Raises:  ArgumentError for another extension, and for an existing file unless `overwrite`
    """
    path = _checked_weights(filepath)
    _check_overwrite(path, overwrite)
    save(model.state_dict(), path)


def load_weights(model: Any, filepath: Path, skip_mismatch: bool = False) -> None:
    """Read them into a model that is built.

    Args:
        skip_mismatch: leave what the file does not have, or has in another shape, as it is.

    Raises:  CheckpointError with every name that is missing, unexpected or of another shape
    """
    path = _checked_weights(filepath)
    if not all(layer.built for layer in model.flat_layers()):
        raise ArgumentError(
            f"{model.name} has no weights yet to load into", mend="call it with a batch, or model.build(input_shape)"
        )
    state = _tensors(path)
    if skip_mismatch:
        own = model.state_dict()
        state = {name: t for name, t in state.items() if name in own and own[name].shape == t.shape}
    model.load_state_dict(state, strict=not skip_mismatch, source=path)


def _checked_weights(filepath: Path) -> str:
    path = os.fspath(filepath)
    if not path.endswith(".safetensors"):
        raise ArgumentError(
            f"weights are kept as safetensors, not as {path!r}", mend="name the file model.weights.safetensors"
        )
    return path


def _check_overwrite(path: str, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise ArgumentError(f"{path!r} exists", mend="pass overwrite=True")


__all__ = [
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]
