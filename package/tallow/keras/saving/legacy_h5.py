"""Read and write the weights of Keras' older `.h5` files, which list layers and weights in attributes:

    / or /model_weights     attribute layer_names: the layers, in order
    /dense                  attribute weight_names: its weights, trainable ones first; datasets under these names

Source:  keras/src/legacy/saving/legacy_h5_format.py of Keras 3.15
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.keras.saving.hdf5 import WeightsFile, assign, h5py, write_array

LAYERS, WEIGHTS, MODEL, OPTIMIZER = "layer_names", "weight_names", "model_weights", "optimizer_weights"


def is_legacy(file: WeightsFile) -> bool:
    """Return whether a file has the older format."""
    return _root(file) is not None


def _root(file: WeightsFile) -> str | None:
    return next((path for path in ("", MODEL) if file.names_at(path, LAYERS) is not None), None)


def load(model: Any, file: WeightsFile, skip_mismatch: bool = False) -> None:
    """Load the weights of a file in the order of the layers; on an error, none changes.

    Args:    skip_mismatch: skip weights of another shape.

    Raises:  CheckpointError that lists everything that does not fit
    """
    root = _root(file) or ""
    saved = {name: file.names_at(_join(root, name), WEIGHTS) or [] for name in file.names_at(root, LAYERS) or []}
    groups = [(name, names) for name, names in saved.items() if names]
    layers = [(layer, weights) for layer in model.layers if (weights := _weights_of(layer))]
    if len(groups) != len(layers):
        raise CheckpointError(f"{file.name} has {len(groups)} layers with weights, {model.name} has {len(layers)}")
    problems: list[str] = []
    pairs: list[tuple[Tensor, Any]] = []
    for (layer, weights), (group, names) in zip(layers, groups, strict=True):
        if len(names) != len(weights):
            problems.append(f"  {group}: {len(names)} weights in the file, {layer.name} has {len(weights)}")
            continue
        for weight, name in zip(weights, names, strict=True):
            dataset = file.dataset_at(_join(root, f"{group}/{name}"))
            if tuple(dataset.shape) == tuple(weight.shape):
                pairs.append((weight, dataset))
            else:
                problems.append(f"  wrong shape  {name}: file {tuple(dataset.shape)}, model {tuple(weight.shape)}")
    if problems and not skip_mismatch:
        raise CheckpointError("\n".join([f"{file.name} does not fit {model.name}", *problems]))
    assign([(weight, file.read(dataset)) for weight, dataset in pairs])


def encode(model: Any, attributes: Mapping[str, str], optimizer: Sequence[Any], what: str) -> bytes:
    """Return a file with the weights of a model.

    Args:
        attributes: texts about the file.
        optimizer: the arrays of the optimizer's state.
        what: the purpose, for the error without h5py.
    """
    buffer = io.BytesIO()
    with h5py(what).File(buffer, "w") as file:
        file.attrs.update(attributes)
        root = file.create_group(MODEL)
        root.attrs[LAYERS] = [layer.name for layer in model.layers]
        for layer in model.layers:
            _write(root.create_group(layer.name), _weights_of(layer))
        if optimizer:
            _write(file.create_group(OPTIMIZER), optimizer)
    return buffer.getvalue()


def _write(group: Any, arrays: Sequence[Any]) -> None:
    names = [f"{index}_{getattr(array, 'name', None) or 'array'}" for index, array in enumerate(arrays)]
    group.attrs[WEIGHTS] = names
    for name, array in zip(names, arrays, strict=True):
        write_array(group, name, array)


def _weights_of(layer: Any) -> list[Tensor]:
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _join(root: str, name: str) -> str:
    return f"{root}/{name}" if root else name
