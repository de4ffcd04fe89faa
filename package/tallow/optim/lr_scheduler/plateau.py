"""ReduceLROnPlateau: lower the learning rate when a metric stops improving."""

from __future__ import annotations

from math import inf
from typing import Any

from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler.scheduler import LRScheduler, as_optimizer, per_group, set_value, values_of
from tallow.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiply the learning rate by factor when the metric has not improved for more than patience epochs.

    Args:    as torch.optim.lr_scheduler.ReduceLROnPlateau
    """

    CHOICES = {"mode": ("min", "max"), "threshold_mode": ("rel", "abs")}  # noqa: RUF012
    INFINITE = ("best", "mode_worse")

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ArgumentError(f"Factor should be < 1.0, not {factor}")
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode {mode} is unknown!", hint="use 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(f"threshold mode {threshold_mode} is unknown!", hint="use 'rel' or 'abs'")
        self.optimizer = as_optimizer(optimizer)
        self.factor = factor
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @recorded_whole
    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record the metric of an epoch, a number or a one-element tensor."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _take_trial_step(self) -> None:
        self.step(0.0)
        self._reduce()

    @property
    def in_cooldown(self) -> bool:
        """True if epochs after a reduction are currently ignored."""
        return self.cooldown_counter > 0

    def _is_better(self, current: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            return sign * current > sign * (self.best * (1.0 + sign * self.threshold))
        return sign * current > sign * (self.best + sign * self.threshold)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ArgumentError(
                    f"the optimizer has {len(groups)} param groups, but there are {len(self.min_lrs)} min_lrs",
                    hint="append the minimum of the new groups to scheduler.min_lrs",
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_value(group, "lr", new)
