"""Schedules that multiply the learning rate by a factor: StepLR, MultiStepLR, ExponentialLR, ConstantLR, etc."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler.scheduler import LRScheduler, values_of
from tallow.optim.optimizer import Optimizer


class _FactorLR(LRScheduler):
    """Base class: multiply each learning rate by the same factor.

    `_factor` is the factor between two epochs, `_total_factor` the factor since the start.
    """

    def get_lr(self) -> list[Any]:
        factor = self._factor()
        return [lr if factor is None else lr * factor for lr in values_of(self.optimizer, "lr")]

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self._total_factor() for lr in self.base_lrs]

    def _factor(self) -> float | None:
        """Return the factor from the previous epoch to this one; None for no change."""
        raise NotImplementedError

    def _total_factor(self) -> float:
        raise NotImplementedError


class StepLR(_FactorLR):
    """Multiply the learning rate by gamma every step_size epochs.

    Args:    as torch.optim.lr_scheduler.StepLR
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        return None if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma

    def _total_factor(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_FactorLR):
    """Multiply the learning rate by gamma at each milestone.

    Args:    as torch.optim.lr_scheduler.MultiStepLR
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        times = self.milestones[self.last_epoch]
        return self.gamma**times if times else None

    def _total_factor(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ExponentialLR(_FactorLR):
    """Multiply the learning rate by gamma every epoch.

    Args:    as torch.optim.lr_scheduler.ExponentialLR
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        return None if self._is_initial else self.gamma

    def _total_factor(self) -> float:
        return self.gamma**self.last_epoch


class ConstantLR(_FactorLR):
    """Multiply the learning rate by factor until epoch total_iters.

    Args:    as torch.optim.lr_scheduler.ConstantLR
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ArgumentError(f"Constant multiplicative factor expected to be between 0 and 1, not {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _total_factor(self) -> float:
        return 1.0 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(_FactorLR):
    """Multiply the learning rate by a factor that goes linearly from start_factor to end_factor.

    Args:    as torch.optim.lr_scheduler.LinearLR
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ArgumentError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1, not "
                f"{start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ArgumentError(f"Ending multiplicative factor expected to be between 0 and 1, not {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        slope = self.end_factor - self.start_factor
        return 1.0 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope)

    def _total_factor(self) -> float:
        slope = self.end_factor - self.start_factor
        return self.start_factor + slope * min(self.total_iters, self.last_epoch) / self.total_iters


class PolynomialLR(_FactorLR):
    """Set the learning rate to initial_lr · (1 - epoch / total_iters)^power, which is zero from epoch total_iters on.

    Args:    as torch.optim.lr_scheduler.PolynomialLR
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        remaining, previous = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return (remaining / previous) ** self.power

    def _total_factor(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
