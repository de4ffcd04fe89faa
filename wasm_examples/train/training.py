"""The training loop, one batch at a time, so that a page can look, pause and change settings in between."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tallow as tl
from tallow import nn, optim

F = nn.functional

# As many examples as an evaluation looks at: enough for a percent, quick enough for a page.
EVALUATED = 500


@dataclass(frozen=True)
class Data:
    """Examples x, points (N, 2) or images (N, 1, 28, 28), of classes y (N,), and which are trained on or held out."""

    x: tl.Tensor
    y: tl.Tensor
    train: tl.Tensor
    held: tl.Tensor


class Trainer:
    """A network on its way.

    Attributes:
        steps, epochs: how many are complete.
        diverged: whether a loss was no number any more.
    """

    def __init__(self, data: Data, network: nn.Sequential, optimizer: optim.Optimizer, batch_size: int) -> None:
        self.data = data
        self.network = network
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.steps = 0
        self.epochs = 0
        self.diverged = False
        self._ahead = tl.arange(0)  # what is left of the epoch

    def step(self) -> float:
        """One batch; its loss."""
        if len(self._ahead) == 0:
            self._ahead = self.data.train[tl.randperm(len(self.data.train))]
        batch, self._ahead = self._ahead[: self.batch_size], self._ahead[self.batch_size :]
        loss = F.cross_entropy(self.network(self.data.x[batch]), self.data.y[batch])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        self.epochs += len(self._ahead) == 0
        value = loss.item()
        self.diverged = not math.isfinite(value)
        return value

    def use(self, data: Data) -> None:
        """Go on with other examples."""
        self.data = data
        self._ahead = self._ahead[:0]

    def evaluate(self) -> dict[str, float]:
        """Loss and accuracy on what is held out, and the accuracy on what is trained on."""
        loss, accuracy = self._score(self.data.held)
        return {"loss": loss, "accuracy": accuracy, "train_accuracy": self._score(self.data.train)[1]}

    def _score(self, which: tl.Tensor) -> tuple[float, float]:
        which = which[:EVALUATED]
        logits, y = self.logits(self.data.x[which]), self.data.y[which]
        return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()

    def logits(self, x: tl.Tensor) -> tl.Tensor:
        self.network.eval()
        with tl.no_grad():
            logits = self.network(x)
        self.network.train()
        return logits
