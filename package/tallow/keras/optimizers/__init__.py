"""Optimizers under their Keras names."""

from __future__ import annotations

from typing import Any

from tallow import optim
from tallow.errors import ArgumentTypeError
from tallow.keras.lookup import classes_of, find
from tallow.keras.optimizers import schedules
from tallow.keras.optimizers.algorithms import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lion,
    Nadam,
    RMSprop,
)
from tallow.keras.optimizers.extra import Adafactor, Ftrl, Lamb, Muon, ScheduleFreeAdamW
from tallow.keras.optimizers.loss_scale import LossScaleOptimizer
from tallow.keras.optimizers.optimizer import FromOptim, Optimizer
from tallow.lazy_names import names_of

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "FromOptim",
    "Ftrl",
    "Lamb",
    "Lion",
    "LossScaleOptimizer",
    "Muon",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "ScheduleFreeAdamW",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]

CLASSES = classes_of(globals(), Optimizer)
CLASSES |= {name.lower(): cls for name, cls in CLASSES.items()}


def get(identifier: Any) -> Optimizer | None:
    """Return the optimizer for a name, a saved configuration, or an optimizer of Keras or `tallow.optim`.

    Raises:  ArgumentError for an unknown name, ArgumentTypeError for anything that is not an optimizer
    """
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str):
        return find(identifier, CLASSES, "an optimizer")()
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, type) and issubclass(identifier, Optimizer):
        return identifier()  # type: ignore[call-arg]  # all classes but the base have defaults
    if isinstance(identifier, optim.Optimizer) or (
        isinstance(identifier, type) and issubclass(identifier, optim.Optimizer)
    ):
        return FromOptim(identifier)
    raise ArgumentTypeError(
        f"{identifier!r} is not an optimizer",
        hint='pass a name such as "adam", keras.optimizers.Adam(...), or an optimizer of tallow.optim',
    )


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """Return the class name and arguments of an optimizer, without its state, for `deserialize`."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """Return the optimizer that `serialize` described.

    Raises:  ArgumentError for a class that is neither a known optimizer nor in `custom_objects`
    """
    classes = CLASSES | (custom_objects or {})
    return find(config["class_name"], classes, "an optimizer").from_config(config["config"], custom_objects)


__getattr__, __dir__ = names_of(__name__)
