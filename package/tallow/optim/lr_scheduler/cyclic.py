"""CyclicLR: cyclic learning rates."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler.momentum import set_momentum, start_momentum
from tallow.optim.lr_scheduler.scheduler import LRScheduler, as_optimizer, per_group, set_value
from tallow.optim.optimizer import Optimizer
from tallow.optim.state_checks import attributes_fault

MODES = {
    "triangular": "cycle",
    "triangular2": "cycle",
    "exp_range": "iterations",
}  # mode: what its scale function counts


class CyclicLR(LRScheduler):
    """Cycle the learning rate from base_lr to max_lr and back; call `step` after every batch.

    Args:    as torch.optim.lr_scheduler.CyclicLR

    Source:  Smith 2015, arXiv:1506.01186
    """

    CHOICES = {"mode": MODES, "scale_mode": ("cycle", "iterations")}  # noqa: RUF012

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = as_optimizer(optimizer)
        if scale_fn is None and mode not in MODES:
            raise ArgumentError(f"mode {mode!r} is invalid and scale_fn is None", hint=f"use one of {', '.join(MODES)}")
        base_lrs = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                set_value(group, "lr", lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else MODES[mode]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            self.use_beta1 = start_momentum(optimizer, base_momentum, max_momentum, resuming=last_epoch != -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the amplitude of a cycle, relative to the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in limits:
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with the attributes of a `scale_fn` that is an object."""
        function = self._scale_fn_custom
        is_function = function is None or isinstance(function, types.FunctionType)
        return super().state_dict() | {"_scale_fn_custom": None if is_function else function.__dict__.copy()}

    def _delegated_names(self) -> tuple[str, ...]:
        return ("_scale_fn_custom",)

    def _fault(self, name: str, own: Any, value: Any) -> str | None:
        return attributes_fault(own, value) if name == "_scale_fn_custom" else super()._fault(name, own, value)

    def _restore(self, state_dict: dict[str, Any]) -> None:
        super()._restore({name: v for name, v in state_dict.items() if name != "_scale_fn_custom"})
        attributes = state_dict.get("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
