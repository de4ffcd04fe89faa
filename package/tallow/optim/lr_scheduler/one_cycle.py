"""OneCycleLR: the 1cycle policy."""

from __future__ import annotations

import math
from typing import Any

from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler.momentum import set_momentum, start_momentum
from tallow.optim.lr_scheduler.scheduler import LRScheduler, as_optimizer, per_group
from tallow.optim.optimizer import Optimizer


def _cosine(start: Any, end: Any, fraction: float) -> Any:
    return end + (start - end) / 2.0 * (math.cos(math.pi * fraction) + 1)


def _linear(start: Any, end: Any, fraction: float) -> Any:
    return (end - start) * fraction + start


SHAPES = {"cos": _cosine, "linear": _linear}


class OneCycleLR(LRScheduler):
    """Raise the learning rate to max_lr, then lower it far below the initial rate, over the whole training.

    Call `step` after every batch.

    Args:    as torch.optim.lr_scheduler.OneCycleLR

    Source:  Smith & Topin 2017, arXiv:1708.07120
    """

    CHOICES = {"_anneal_func_type": SHAPES}  # noqa: RUF012

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = as_optimizer(optimizer)
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ArgumentError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in SHAPES:
            raise ArgumentError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(pct_start * self.total_steps, self.total_steps, three_phase)
        for group, highest in zip(optimizer.param_groups, per_group("max_lr", optimizer, max_lr), strict=True):
            if last_epoch == -1:
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = start_momentum(optimizer, base_momentum, max_momentum, resuming=last_epoch != -1)
        super().__init__(optimizer, last_epoch)

    def _take_trial_step(self) -> None:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"epoch {self.last_epoch} of {self.total_steps}")
        super()._take_trial_step()

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}",
                hint="set total_steps to the number of batches in all epochs",
            )
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end:
                break
            start = end
        else:
            start = self._schedule_phases[-2]["end_step"]
        fraction = (step - start) / (end - start)
        anneal = SHAPES[self._anneal_func_type]
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                momentum = anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], fraction)
                set_momentum(group, momentum, self.use_beta1)
        groups = self.optimizer.param_groups
        return [anneal(group[phase["start_lr"]], group[phase["end_lr"]], fraction) for group in groups]


def _count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ArgumentError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    counts = {"total_steps": total_steps}
    if total_steps is None:
        counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in counts.items():
        if not isinstance(value, int) or value <= 0:
            raise ArgumentError(f"Expected positive integer {name}, but got {value}")
    return math.prod(value for value in counts.values() if value is not None)


def _phases(up: float, total: int, three: bool) -> list[dict[str, Any]]:
    """Return the phases, each with its last step and the group options it moves between."""

    def phase(end_step: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str) -> dict[str, Any]:
        return {
            "end_step": end_step, "start_lr": start_lr, "end_lr": end_lr,
            "start_momentum": start_momentum, "end_momentum": end_momentum,
        }  # fmt: skip

    rise = phase(up - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        return [rise, phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [
        rise,
        phase(2 * up - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]
