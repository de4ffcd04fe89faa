"""Cosine schedules: CosineAnnealingLR, CosineAnnealingWarmRestarts."""

from __future__ import annotations

import math
from typing import Any

from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler.scheduler import LRScheduler, values_of
from tallow.optim.optimizer import Optimizer


def _cosine(lr: Any, lowest: float, fraction: float) -> Any:
    """Return the value of half a cosine wave, from `lr` at 0 to `lowest` at 1."""
    return lowest + (lr - lowest) * (1 + math.cos(math.pi * fraction)) / 2


class CosineAnnealingLR(LRScheduler):
    """Anneal the learning rate to eta_min in T_max epochs, along half a cosine wave, and back up.

    Args:    as torch.optim.lr_scheduler.CosineAnnealingLR

    Source:  Loshchilov & Hutter 2016, arXiv:1608.03983, without the restarts
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        lrs = values_of(self.optimizer, "lr")
        if self._is_initial:
            return lrs
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        # At the lowest point the ratio of consecutive learning rates is undefined.
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * rise for lr, base in zip(lrs, self.base_lrs, strict=True)]
        epochs = (self.last_epoch, self.last_epoch - 1)
        current, previous = (1 + math.cos(math.pi * epoch / self.T_max) for epoch in epochs)
        return [current / previous * (lr - self.eta_min) + self.eta_min for lr in lrs]

    def _get_closed_form_lr(self) -> list[Any]:
        return [_cosine(lr, self.eta_min, self.last_epoch / self.T_max) for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneal the learning rate to eta_min in T_0 epochs, then restart with a period T_mult times as long, repeatedly.

    Args:    as torch.optim.lr_scheduler.CosineAnnealingWarmRestarts

    Source:  Loshchilov & Hutter 2016, arXiv:1608.03983, eq. 5
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ArgumentError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ArgumentError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, int | float):
            raise ArgumentError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min).__name__}")
        self.T_0 = T_0
        self.T_i = T_0  # the length of the current period
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch  # epochs since the current period started
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return [_cosine(lr, self.eta_min, self.T_cur / self.T_i) for lr in self.base_lrs]

    @recorded_whole
    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to a possibly fractional `epoch`: `step(epoch + batch / batches)`."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ArgumentError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._jump_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_lrs(self.get_lr())

    def _jump_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            rounds = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**rounds - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**rounds
