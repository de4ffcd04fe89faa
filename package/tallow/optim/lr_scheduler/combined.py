"""Schedulers composed of schedulers: SequentialLR, ChainedScheduler."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tallow.optim.lr_scheduler.scheduler import LRScheduler, check_one_each, set_value, values_of
from tallow.optim.optimizer import Optimizer


class _SchedulerGroup(LRScheduler):
    """Base class; its state contains the states of its schedulers."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if not schedulers:
            raise ArgumentError(f"{name} expects at least one scheduler, but got no scheduler")
        self.optimizer = getattr(schedulers[0], "optimizer", None) if optimizer is None else optimizer  # type: ignore[assignment]
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise ArgumentTypeError(f"{name} at index {i} should have `optimizer` as its attribute")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ArgumentError(f"{name} does not support ReduceLROnPlateau, at index {i}: its step needs a metric")
            if scheduler.optimizer is not self.optimizer:
                raise ArgumentError(
                    f"{name} expects all schedulers to belong to the same optimizer; the one at index {i} does not"
                )
        self._schedulers = schedulers

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().check_state_dict(state_dict)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.check_state_dict(state)

    def _delegated_names(self) -> tuple[str, ...]:
        return ("_schedulers",)

    def _fault(self, name: str, own: Any, value: Any) -> str | None:
        if name != "_schedulers":
            return super()._fault(name, own, value)
        check_one_each(name, value, own)
        if not all(isinstance(state, dict) for state in value):
            return "are not states"
        for scheduler, state in zip(self._schedulers, value, strict=True):
            scheduler._check_values(state)
        return None

    def _restore(self, state_dict: dict[str, Any]) -> None:
        super()._restore({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict.get("_schedulers", ()), strict=False):
            scheduler._restore(state)

    def _trial_copy(self, optimizer: Optimizer) -> LRScheduler:
        duplicate = super()._trial_copy(optimizer)
        duplicate._schedulers = [scheduler._trial_copy(optimizer) for scheduler in self._schedulers]  # type: ignore[attr-defined]
        return duplicate


class SequentialLR(_SchedulerGroup):
    """Run schedulers one after another; each milestone starts the next one.

    Args:    as torch.optim.lr_scheduler.SequentialLR
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        super().__init__(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got {len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Every scheduler took its first step in its constructor, but only the first scheduler should have.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        _undo_step(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    @recorded_whole
    def step(self) -> None:  # type: ignore[override]
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo_step(scheduler: LRScheduler) -> None:
    if isinstance(scheduler, _SchedulerGroup):
        for inner in scheduler._schedulers:
            _undo_step(inner)
    else:
        scheduler.last_epoch -= 1


class ChainedScheduler(_SchedulerGroup):
    """Run all schedulers together; each uses the learning rate that the previous one set.

    Args:    as torch.optim.lr_scheduler.ChainedScheduler
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        super().__init__(schedulers, optimizer)
        self._last_lr = values_of(self.optimizer, "lr")

    @recorded_whole
    def step(self) -> None:  # type: ignore[override]
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")
