"""The settings of the page, checked, and the network and optimizer that they describe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tallow import nn, optim
from tallow.errors import ArgumentError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    name: getattr(nn, name) for name in ("ReLU", "Tanh", "SiLU", "GELU", "LeakyReLU", "Sigmoid")
}
# Optimizers by their names on the page, with the options that the name implies.
OPTIMIZERS: dict[str, tuple[type[optim.Optimizer], dict[str, Any]]] = {
    "SGD": (optim.SGD, {}),
    "momentum": (optim.SGD, {"momentum": 0.9}),
    "Adam": (optim.Adam, {}),
    "AdamW": (optim.AdamW, {}),
    "RMSprop": (optim.RMSprop, {}),
    "Adagrad": (optim.Adagrad, {}),
}
MAX_LAYERS = 8
MAX_WIDTH = 512


@dataclass(frozen=True)
class Settings:
    """The form of the page. Changes of the data or the network make a new network; others apply to the current one."""

    dataset: str
    noise: float
    seed: int
    network: str
    hidden: str
    activation: str
    optimizer: str
    lr: float
    l1: float
    weight_decay: float
    batch_size: int

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise ArgumentError(f"Noise cannot be {self.noise}", hint="write a number from 0 to 1")
        if not 0 <= self.l1 < math.inf:
            raise ArgumentError(f"L1 cannot be {self.l1}", hint="write 0 or more")
        if self.batch_size < 1:
            raise ArgumentError(f"Batch size cannot be {self.batch_size}", hint="write 1 or more")

    def data_key(self) -> tuple[object, ...]:
        """Return the settings that decide the dataset."""
        return self.dataset, self.noise, self.seed

    def network_key(self) -> tuple[object, ...]:
        """Return the settings that decide the network."""
        return (*self.data_key(), self.network, self.hidden, self.activation)

    def optimizer_options(self) -> dict[str, Any]:
        """Return the keyword arguments of the optimizer."""
        return {"lr": self.lr, **OPTIMIZERS[self.optimizer][1], "weight_decay": self.weight_decay}


def make_network(settings: Settings, image: bool, classes: int) -> nn.Sequential:
    """Return a network for points (B, 2) or images (B, 1, 28, 28) that returns logits (B, classes)."""
    widths = _widths(settings.hidden)
    activation = ACTIVATIONS[settings.activation]
    layers: list[nn.Module] = []
    features = 2
    if image and settings.network == "cnn":
        layers += [nn.Conv2d(1, 8, 5, stride=2, padding=2), activation()]  # (B, 8, 14, 14)
        layers += [nn.Conv2d(8, 16, 3, stride=2, padding=1), activation()]  # (B, 16, 7, 7)
        features = 16 * 7 * 7
    elif image:
        features = 28 * 28
    if image:
        layers.append(nn.Flatten())
    for width in widths:
        layers += [nn.Linear(features, width), activation()]
        features = width
    return nn.Sequential(*layers, nn.Linear(features, classes))


def make_optimizer(settings: Settings, network: nn.Module, previous: optim.Optimizer | None = None) -> optim.Optimizer:
    """Return the optimizer of `settings`, with the state of `previous` if that is of the same kind."""
    kind, _ = OPTIMIZERS[settings.optimizer]
    optimizer = kind(network.parameters(), **settings.optimizer_options())
    # SGD with and without momentum have the same type, but SGD without momentum cannot use the other's buffers.
    if type(previous) is kind and previous.param_groups[0].get("momentum") == optimizer.param_groups[0].get("momentum"):
        optimizer.state = previous.state
    return optimizer


def _widths(text: str) -> list[int]:
    """Parse the widths of the hidden layers, such as "16, 16"; an empty text means no hidden layers."""
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= MAX_WIDTH for word in words):
        raise ArgumentError(
            f"hidden layers: {text!r}", hint=f"write their widths, each from 1 to {MAX_WIDTH}, such as: 16, 16"
        )
    if len(words) > MAX_LAYERS:
        raise ArgumentError(f"{len(words)} hidden layers are too many for a tab", hint=f"write at most {MAX_LAYERS}")
    return [int(word) for word in words]
