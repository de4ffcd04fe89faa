"""What the reader has chosen, checked, and what it means: a network, an optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow import nn, optim
from tallow.errors import ArgumentError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    name: getattr(nn, name) for name in ("ReLU", "Tanh", "SiLU", "GELU", "LeakyReLU", "Sigmoid")
}
# Optimizers by the page's names, with the options that a page's name implies.
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
    """The form of the page. Those of the data and the network make a new network; the others change one that trains."""

    dataset: str
    noise: float
    seed: int
    network: str
    hidden: str
    activation: str
    optimizer: str
    lr: float
    weight_decay: float
    batch_size: int

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise ArgumentError(f"Noise cannot be {self.noise}", mend="write a number from 0 to 1")
        if self.batch_size < 1:
            raise ArgumentError(f"Batch size cannot be {self.batch_size}", mend="write 1 or more")

    def data_key(self) -> tuple[object, ...]:
        return self.dataset, self.noise, self.seed

    def network_key(self) -> tuple[object, ...]:
        return (*self.data_key(), self.network, self.hidden, self.activation)

    def optimizer_options(self) -> dict[str, Any]:
        return {"lr": self.lr, **OPTIMIZERS[self.optimizer][1], "weight_decay": self.weight_decay}


def make_network(settings: Settings, image: bool, classes: int) -> nn.Sequential:
    """A network for points in the plane, or for images (B, 1, 28, 28); it gives logits (B, classes)."""
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


def make_optimizer(settings: Settings, network: nn.Module, before: optim.Optimizer | None = None) -> optim.Optimizer:
    """The optimizer of `settings`; with what `before` remembers of the parameters, if it is of the same kind."""
    kind, _ = OPTIMIZERS[settings.optimizer]
    made = kind(network.parameters(), **settings.optimizer_options())
    # A buffer of momentum alone tells SGD with it from SGD without, which would not know what to do with it.
    if type(before) is kind and before.param_groups[0].get("momentum") == made.param_groups[0].get("momentum"):
        made.state = before.state
    return made


def _widths(text: str) -> list[int]:
    """The hidden layers, as in "16, 16"; none is a network of one layer."""
    words = text.replace(",", " ").split()
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= MAX_WIDTH for word in words):
        raise ArgumentError(
            f"hidden layers: {text!r}", mend=f"write their widths, each from 1 to {MAX_WIDTH}, such as: 16, 16"
        )
    if len(words) > MAX_LAYERS:
        raise ArgumentError(f"{len(words)} hidden layers are too many for a tab", mend=f"write at most {MAX_LAYERS}")
    return [int(word) for word in words]
