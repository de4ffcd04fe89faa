"""Create the model that a config in a file describes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallow.errors import CheckpointError, TallowError
from tallow.keras.layers.limits import limit_weights
from tallow.keras.serialization import custom_object_scope, deserialize_keras_object
from tallow.keras.trainer import Trainer

KERAS_VERSION = "3.15.1"  # the version written to files
MAX_DEPTH = 200  # nesting limit of a config: about a dozen levels per nested model
FREE_BYTES = 2**20  # that a config may allocate beyond twice its weights, so that all small mismatches are reported


def rebuild(name: str, config: dict[str, Any], custom_objects: Any, compile: bool, size: int) -> Any:
    """Create, build and compile the model of a config.

    Args:
        name: of the config, for errors.
        size: the number of bytes of its weights.

    Raises:  CheckpointError for a config that describes no model, or too large a one; ArgumentError for unknown classes
    """
    with custom_object_scope(custom_objects or {}), _config_errors(name):
        with limit_weights(2 * size + FREE_BYTES):
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
    if isinstance(config, list):  # written by earlier versions
        model.build(*config[0], **config[1])
    elif config.get("shapes_dict"):
        model.build(**config["shapes_dict"])
    elif config.get("input_shape"):
        model.build(config["input_shape"])


@contextmanager
def _config_errors(name: str) -> Iterator[None]:
    """Convert errors caused by an invalid config into CheckpointErrors that name the file."""
    try:
        yield
    except TallowError:
        raise
    except (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{name} does not describe a valid model: {type(error).__name__}: {error}", hint="save the model again"
        ) from error
