"""Whole models in Keras' older `.h5` files:

    attribute model_config      the class and the config of the model, as JSON
    attribute training_config   the arguments of `compile`, with the optimizer as optimizer_config
    /model_weights              the weights; see `legacy_h5`
    /optimizer_weights          attribute weight_names: the optimizer's state, in the order of `optimizer_state`

Keras 2 wrote configs of another form, which `modern` converts.

Source:  keras/src/legacy/saving/legacy_h5_format.py and saving_utils.py of Keras 3.15
"""

from __future__ import annotations

from typing import Any

from tallow.errors import CheckpointError, TallowWarning, warn
from tallow.io.atomic import atomic_write
from tallow.io.json_object import parse_object
from tallow.io.source import Path, open_source
from tallow.keras.saving import legacy_h5, optimizer_state
from tallow.keras.saving.hdf5 import WeightsFile
from tallow.keras.saving.rebuild import KERAS_VERSION, MAX_DEPTH, rebuild
from tallow.keras.serialization import serialize_keras_object, to_json

EXTENSIONS = (".h5", ".hdf5")
MODEL, TRAINING, VERSION = "model_config", "training_config", "keras_version"
# Entries of Keras 2 that Keras 3 has not, and that change nothing here.
DROPPED = (
    "batch_input_shape",
    "implementation",
    "time_major",
    "ragged",
    "sparse",
    "is_legacy_optimizer",
    "jit_compile",
)


def save(model: Any, path: str, include_optimizer: bool) -> None:
    """Write a model that Keras reads.  Raises: as `save_model`"""
    attributes = {VERSION: KERAS_VERSION, "backend": "tallow", MODEL: to_json(serialize_keras_object(model))}
    state = []
    if include_optimizer and model.compiled and model.optimizer is not None:
        arguments = dict(model.get_compile_config())
        arguments["optimizer_config"] = arguments.pop("optimizer")
        attributes[TRAINING] = to_json(arguments)
        if model.optimizer.built and optimizer_state.is_known(model.optimizer):
            state = optimizer_state.arrays(model.optimizer, model.trainable_weights)
    data = legacy_h5.encode(model, attributes, state, f"saving {path!r}")
    with atomic_write(path) as file:
        file.write(data)


def load(path: Path, custom_objects: Any, compile: bool) -> Any:
    """Load a model, with its weights and the state of its optimizer.  Raises: as `load_model`"""
    file = WeightsFile(*open_source(path))
    try:
        converted = modern if (file.text_at(VERSION) or "2").startswith("2") else lambda config: config
        config = converted(_json(file, MODEL))
        arguments = converted(_json(file, TRAINING)) if file.text_at(TRAINING) is not None else None
        if arguments is not None:
            arguments["optimizer"] = arguments.pop("optimizer_config", None)
        model = rebuild(
            file.name, {**config, "compile_config": arguments}, custom_objects, compile, file.stored_bytes()
        )
        legacy_h5.load(model, file)
        names = file.names_at(legacy_h5.OPTIMIZER, legacy_h5.WEIGHTS) if compile and arguments is not None else None
        if names and model.optimizer.built and optimizer_state.is_known(model.optimizer):
            arrays = [file.read(file.dataset_at(f"{legacy_h5.OPTIMIZER}/{name}")) for name in names]
            try:
                optimizer_state.restore(model.optimizer, model.trainable_weights, arrays, file.name)
            except CheckpointError as error:  # that of Keras 2 has another form
                warn(f"the optimizer starts anew: {error}", TallowWarning)
    finally:
        file.close()
    return model


def _json(file: WeightsFile, attribute: str) -> dict[str, Any]:
    text = file.text_at(attribute)
    if text is None:
        raise CheckpointError(
            f"{file.name} has no attribute {attribute}: it holds weights without a model",
            hint="create the model, and call model.load_weights",
        )
    return parse_object(text.encode(), f"{file.name}: {attribute}", MAX_DEPTH)


# ---------------------------------------------------------------------------------------------------------- of Keras 2


def modern(entry: Any) -> Any:
    """Return the config of a model of Keras 2 as Keras 3 writes it."""
    if isinstance(entry, list):
        return [modern(part) for part in entry]
    if not isinstance(entry, dict):
        return entry
    kind, config = entry.get("class_name"), entry.get("config")
    if kind == "MeanMetricWrapper" and isinstance(config, dict):  # a metric by the name of a function
        return config.get("fn")
    if isinstance(kind, str) and isinstance(config, dict):
        kind = "Functional" if kind == "Model" else kind
        entry = {**entry, "class_name": kind, "config": _modern_config(kind, config)}
    if isinstance(entry.get("inbound_nodes"), list):
        entry = {**entry, "inbound_nodes": [_modern_node(node) for node in entry["inbound_nodes"]]}
    return {key: modern(part) for key, part in entry.items()}


def _modern_config(kind: str, config: dict[str, Any]) -> dict[str, Any]:
    shape, layers, axis = config.get("batch_input_shape"), config.get("layers"), config.get("axis")
    config = {key: value for key, value in config.items() if key not in DROPPED}
    if "lr" in config:
        config["learning_rate"] = config.pop("lr")
    if not config.get("decay", True):
        del config["decay"]
    for ends in ("input_layers", "output_layers"):  # a single tensor is a list of one
        if isinstance(config.get(ends), list) and len(config[ends]) == 1 and _is_place(config[ends][0]):
            config[ends] = config[ends][0]
    if kind == "InputLayer" and shape is not None:
        config["batch_shape"] = shape
    if kind == "BatchNormalization" and isinstance(axis, list) and len(axis) == 1:
        config["axis"] = axis[0]
    if kind == "Sequential" and isinstance(layers, list) and layers and isinstance(layers[0], dict):
        first = layers[0].get("config")
        if layers[0].get("class_name") != "InputLayer" and isinstance(first, dict) and "batch_input_shape" in first:
            start = {"class_name": "InputLayer", "config": {"batch_shape": first["batch_input_shape"]}}
            config["layers"] = [start, *layers]
    return config


def _modern_node(node: Any) -> Any:
    """Return a call of a layer, which is a list [layer, call, output, options] for each tensor."""
    if not isinstance(node, list) or not node:
        return node
    tensors = [_tensor(part) for part in node]
    last = node[0][-1] if isinstance(node[0], list) and isinstance(node[0][-1], dict) else {}
    kwargs = {key: _tensor(value) if _is_place(value) else value for key, value in last.items()}
    return {"args": [tensors[0] if len(tensors) == 1 else tensors], "kwargs": kwargs}


def _is_place(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and [type(part) for part in value] == [str, int, int]


def _tensor(place: Any) -> dict[str, Any]:
    if not isinstance(place, list) or not _is_place(place[:3]):
        raise CheckpointError(f"{place!r:.80} is not the output of a layer", hint="save the model again")
    return {"class_name": "__keras_tensor__", "config": {"keras_history": place[:3]}}
