"""Optimizers under Keras's names; `optimizer` is what they share, and `schedules` are learning rates over time."""

from __future__ import annotations

from typing import Any

from tallow import optim
from tallow.errors import ArgumentTypeError
from tallow.keras.lookup import find
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
from tallow.keras.optimizers.loss_scale import LossScaleOptimizer
from tallow.keras.optimizers.more import Adafactor, Ftrl, Lamb, Muon, ScheduleFreeAdamW
from tallow.keras.optimizers.optimizer import FromOptim, Optimizer

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

CLASSES = {
    spelling: cls
    for cls in (
        SGD,
        Adadelta,
        Adafactor,
        Adagrad,
        Adam,
        AdamW,
        Adamax,
        Lion,
        Nadam,
        RMSprop,
        Ftrl,
        Lamb,
        Muon,
        ScheduleFreeAdamW,
        FromOptim,
        LossScaleOptimizer,
    )
    for spelling in (cls.__name__, cls.__name__.lower())
}


def get(identifier: Any) -> Optimizer | None:
    """The optimizer of a name or a saved configuration; or the optimizer itself, Keras's kind or `tallow.optim`'s.

    Raises:  ArgumentError for a name that no optimizer has, ArgumentTypeError for what is no optimizer
    """
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str):
        return find(identifier, CLASSES, "an optimizer")()
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, type) and issubclass(identifier, Optimizer):
        return identifier()  # type: ignore[call-arg]  # all but the base have defaults
    if isinstance(identifier, optim.Optimizer) or (
        isinstance(identifier, type) and issubclass(identifier, optim.Optimizer)
    ):
        return FromOptim(identifier)
    raise ArgumentTypeError(
        f"{identifier!r} is not an optimizer",
        mend='pass a name such as "adam", keras.optimizers.Adam(...), or an optimizer of tallow.optim',
    )


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """What `deserialize` makes the same optimizer of, but for its state."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """The optimizer that `serialize` wrote down.

    Raises:  ArgumentError for a class that is neither one of these nor in `custom_objects`
    """
    known = CLASSES | (custom_objects or {})
    return find(config["class_name"], known, "an optimizer").from_config(config["config"], custom_objects)
