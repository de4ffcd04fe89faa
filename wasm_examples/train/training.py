"""The training loop, one batch at a time, so that the page can pause and change settings between batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tallow as tl
from tallow import nn, optim

F = nn.functional

# The number of examples in an evaluation: enough for a precision of about a percent, and quick enough for a page.
EVALUATION_EXAMPLES = 500


@dataclass(frozen=True)
class Data:
    """Examples `x`, points (N, 2) or images (N, 1, 28, 28), their classes `y` (N,), and the indices of both sets."""

    x: tl.Tensor
    y: tl.Tensor
    train: tl.Tensor
    test: tl.Tensor


class Trainer:
    """A network in training.

    Attributes:
        l1: factor of the sum of |weight| that is added to the loss of a batch; biases are not in the sum.
        steps, epochs: the number of complete steps and epochs.
        diverged: whether the last loss was not finite.
    """

    def __init__(
        self, data: Data, network: nn.Sequential, optimizer: optim.Optimizer, batch_size: int, l1: float = 0.0
    ) -> None:
        self.data = data
        self.network = network
        self.optimizer = optimizer
        self.batch_size = batch_size
        self.l1 = l1
        self.steps = 0
        self.epochs = 0
        self.diverged = False
        self._remaining = tl.arange(0)  # the indices that are left of the epoch

    def step(self) -> float:
        """Train on one batch and return its loss, without L1."""
        if len(self._remaining) == 0:
            self._remaining = self.data.train[tl.randperm(len(self.data.train))]
        batch, self._remaining = self._remaining[: self.batch_size], self._remaining[self.batch_size :]
        loss = F.cross_entropy(self.network(self.data.x[batch]), self.data.y[batch])
        self.optimizer.zero_grad()
        (loss + self.l1 * sum_of_weights(self.network) if self.l1 else loss).backward()
        self.optimizer.step()
        self.steps += 1
        self.epochs += len(self._remaining) == 0
        value = loss.item()
        self.diverged = not math.isfinite(value)
        return value

    def use(self, data: Data) -> None:
        """Continue training with other examples."""
        self.data = data
        self._remaining = self._remaining[:0]

    def evaluate(self) -> dict[str, float]:
        """Return loss and accuracy on the test set, and accuracy on the training set."""
        loss, accuracy = self._score(self.data.test)
        return {"loss": loss, "accuracy": accuracy, "train_accuracy": self._score(self.data.train)[1]}

    def _score(self, indices: tl.Tensor) -> tuple[float, float]:
        indices = indices[:EVALUATION_EXAMPLES]
        logits, y = self.logits(self.data.x[indices]), self.data.y[indices]
        return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()

    def logits(self, x: tl.Tensor) -> tl.Tensor:
        """Return the logits of examples, without gradients."""
        self.network.eval()
        with tl.no_grad():
            logits = self.network(x)
        self.network.train()
        return logits


def sum_of_weights(network: nn.Module) -> tl.Tensor:
    """Return the sum of |weight|, without biases."""
    return sum(weight.abs().sum() for weight in network.parameters() if weight.ndim > 1)
