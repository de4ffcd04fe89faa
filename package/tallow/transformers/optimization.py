"""Learning rate schedules with warmup, under transformers' names.

Each is a `LambdaLR`: a factor of the learning rate for each step. Warmup grows linearly from 0.

Source:  the formulas of transformers.optimization; Loshchilov & Hutter 2017, arXiv:1608.03983 (cosine)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau
from tallow.optim.optimizer import Optimizer
from tallow.transformers.trainer_utils import SchedulerType

RAMPS: dict[str, Callable[[float], float]] = {
    "linear": lambda done: done,
    "cosine": lambda done: (1 - math.cos(math.pi * done)) / 2,
    "1-sqrt": lambda done: 1 - math.sqrt(1 - done),
}
FALLS: dict[str, Callable[[float, float], float]] = {
    "linear": lambda done, cycles: 1 - done,
    "cosine": lambda done, cycles: _cosine(done, cycles),
    "1-sqrt": lambda done, cycles: 1 - math.sqrt(done),
}


def _cosine(done: float, cycles: float) -> float:
    return (1 + math.cos(2 * math.pi * cycles * done)) / 2


def _warmed(steps: float, after: Callable[[int], float]) -> Callable[[int], float]:
    """Return a factor that grows to 1 in `steps`, and is then `after`."""
    return lambda step: step / max(1, steps) if step < steps else after(step)


def _done(step: int, warmup: float, total: float) -> float:
    return (step - warmup) / max(1, total - warmup)


def get_constant_schedule(optimizer: Optimizer, last_epoch: int = -1) -> LambdaLR:
    """Return the schedule of a constant learning rate."""
    return LambdaLR(optimizer, lambda step: 1, last_epoch)


def get_constant_schedule_with_warmup(optimizer: Optimizer, num_warmup_steps: int, last_epoch: int = -1) -> LambdaLR:
    """Return the schedule of a constant learning rate after warmup."""
    return LambdaLR(optimizer, _warmed(num_warmup_steps, lambda step: 1.0), last_epoch)


def get_linear_schedule_with_warmup(
    optimizer: Optimizer, num_warmup_steps: int, num_training_steps: int, last_epoch: int = -1
) -> LambdaLR:
    """Return the schedule that falls linearly to 0 at `num_training_steps`."""

    def factor(step: int) -> float:  # as transformers: a quotient of integers, exact where 1 - x is not
        return max(0.0, (num_training_steps - step) / max(1, num_training_steps - num_warmup_steps))

    return LambdaLR(optimizer, _warmed(num_warmup_steps, factor), last_epoch)


def get_cosine_schedule_with_warmup(
    optimizer: Optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: float = 0.5, last_epoch: int = -1
) -> LambdaLR:
    """Return the schedule that follows a cosine: half a wave, to 0, by default."""
    return _cosine_above(optimizer, num_warmup_steps, num_training_steps, num_cycles, 0.0, last_epoch)


def get_cosine_with_hard_restarts_schedule_with_warmup(
    optimizer: Optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: int = 1, last_epoch: int = -1
) -> LambdaLR:
    """Return the schedule that falls along a cosine to 0, and restarts, `num_cycles` times."""

    def factor(step: int) -> float:
        done = _done(step, num_warmup_steps, num_training_steps)
        return 0.0 if done >= 1 else _cosine(num_cycles * done % 1.0, 0.5)

    return LambdaLR(optimizer, _warmed(num_warmup_steps, factor), last_epoch)


def get_polynomial_decay_schedule_with_warmup(
    optimizer: Optimizer,
    num_warmup_steps: int,
    num_training_steps: int,
    lr_end: float = 1e-7,
    power: float = 1.0,
    last_epoch: int = -1,
) -> LambdaLR:
    """Return the schedule that falls to `lr_end` as a power of the steps that remain.

    Raises:  ArgumentError for an lr_end that is not below the optimizer's learning rate
    """
    first = optimizer.defaults["lr"]
    if first <= lr_end:
        raise ArgumentError(f"lr_end={lr_end} must be smaller than the optimizer's learning rate, {first}")

    def factor(step: int) -> float:
        if step > num_training_steps:
            return lr_end / first
        left = 1 - (step - num_warmup_steps) / (num_training_steps - num_warmup_steps)
        return ((first - lr_end) * left**power + lr_end) / first

    return LambdaLR(optimizer, _warmed(num_warmup_steps, factor), last_epoch)


def get_inverse_sqrt_schedule(
    optimizer: Optimizer, num_warmup_steps: int, timescale: int | None = None, last_epoch: int = -1
) -> LambdaLR:
    """Return the schedule that falls with the square root of the steps.

    Args:  timescale: steps until the first halving of the square; None means the warmup's, or 10,000 without one.
    """
    scale = timescale if timescale is not None else num_warmup_steps or 10_000
    factor = _warmed(num_warmup_steps, lambda step: 1 / math.sqrt((step + scale - num_warmup_steps) / scale))
    return LambdaLR(optimizer, factor, last_epoch)


def get_cosine_with_min_lr_schedule_with_warmup(
    optimizer: Optimizer,
    num_warmup_steps: int,
    num_training_steps: int,
    num_cycles: float = 0.5,
    last_epoch: int = -1,
    min_lr: float | None = None,
    min_lr_rate: float | None = None,
) -> LambdaLR:
    """Return the cosine schedule that ends at `min_lr`, or `min_lr_rate` of the learning rate.

    Raises:  ArgumentError unless one of them is given
    """
    lowest = _lowest(optimizer, min_lr, min_lr_rate)
    return _cosine_above(optimizer, num_warmup_steps, num_training_steps, num_cycles, lowest, last_epoch)


def get_cosine_with_min_lr_schedule_with_warmup_lr_rate(
    optimizer: Optimizer,
    num_warmup_steps: int,
    num_training_steps: int,
    num_cycles: float = 0.5,
    last_epoch: int = -1,
    min_lr: float | None = None,
    min_lr_rate: float | None = None,
    warmup_lr_rate: float | None = None,
) -> LambdaLR:
    """As `get_cosine_with_min_lr_schedule_with_warmup`, one step ahead; warmup starts at `warmup_lr_rate`.

    Raises:  ArgumentError unless one of min_lr and min_lr_rate is given
    """
    lowest = _lowest(optimizer, min_lr, min_lr_rate)

    def factor(step: int) -> float:
        if step < num_warmup_steps:
            if warmup_lr_rate is None:
                return (step + 1) / max(1, num_warmup_steps)
            return warmup_lr_rate + (1 - warmup_lr_rate) * step / max(1, num_warmup_steps - 1)
        done = (step - num_warmup_steps + 1) / max(1, num_training_steps - num_warmup_steps)
        return max(0.0, _cosine(done, num_cycles) * (1 - lowest) + lowest)

    return LambdaLR(optimizer, factor, last_epoch)


def get_wsd_schedule(
    optimizer: Optimizer,
    num_warmup_steps: int,
    num_decay_steps: int,
    num_training_steps: int | None = None,
    num_stable_steps: int | None = None,
    warmup_type: str = "linear",
    decay_type: str = "cosine",
    min_lr_ratio: float = 0,
    num_cycles: float = 0.5,
    last_epoch: int = -1,
) -> LambdaLR:
    """Return the schedule of three phases: warmup, a constant learning rate, decay to `min_lr_ratio` of it.

    Args:
        num_stable_steps: length of the constant phase; None means what is left of num_training_steps.
        warmup_type, decay_type: "linear", "cosine" or "1-sqrt".

    Raises:  ArgumentError for an unknown type, and without a number of stable steps or of all
    """
    for name, value, known in (("warmup_type", warmup_type, RAMPS), ("decay_type", decay_type, FALLS)):
        if value not in known:
            raise ArgumentError(f"{name}={value!r:.80}", hint=f"pass one of {', '.join(known)}")
    if num_stable_steps is None:
        if num_training_steps is None:
            raise ArgumentError("the length of the schedule is unknown", hint="pass num_training_steps")
        num_stable_steps = num_training_steps - num_warmup_steps - num_decay_steps
    stable_until = num_warmup_steps + num_stable_steps

    def factor(step: int) -> float:
        if step < num_warmup_steps:
            share = RAMPS[warmup_type](step / max(1, num_warmup_steps))
        elif step < stable_until:
            return 1.0
        elif step < stable_until + num_decay_steps:
            share = FALLS[decay_type]((step - stable_until) / max(1, num_decay_steps), num_cycles)
        else:
            return min_lr_ratio
        return max(0.0, share * (1 - min_lr_ratio) + min_lr_ratio)

    return LambdaLR(optimizer, factor, last_epoch)


def get_reduce_on_plateau_schedule(optimizer: Optimizer, **kwargs: Any) -> ReduceLROnPlateau:
    """Return a `ReduceLROnPlateau`; it steps after each evaluation."""
    return ReduceLROnPlateau(optimizer, **kwargs)


def _lowest(optimizer: Optimizer, min_lr: float | None, min_lr_rate: float | None) -> float:
    if (min_lr is None) == (min_lr_rate is None):
        raise ArgumentError("expected one of min_lr and min_lr_rate", hint="pass it in lr_scheduler_kwargs")
    if min_lr_rate is not None:
        return min_lr_rate
    assert min_lr is not None
    return float(min_lr / optimizer.defaults["lr"])


def _cosine_above(
    optimizer: Optimizer, warmup: int, total: int, num_cycles: float, lowest: float, last_epoch: int
) -> LambdaLR:
    def factor(step: int) -> float:
        return max(0.0, _cosine(_done(step, warmup, total), num_cycles) * (1 - lowest) + lowest)

    return LambdaLR(optimizer, _warmed(warmup, factor), last_epoch)


TYPE_TO_SCHEDULER_FUNCTION: dict[SchedulerType, Callable[..., Any]] = {
    SchedulerType.LINEAR: get_linear_schedule_with_warmup,
    SchedulerType.COSINE: get_cosine_schedule_with_warmup,
    SchedulerType.COSINE_WITH_RESTARTS: get_cosine_with_hard_restarts_schedule_with_warmup,
    SchedulerType.POLYNOMIAL: get_polynomial_decay_schedule_with_warmup,
    SchedulerType.CONSTANT: get_constant_schedule,
    SchedulerType.CONSTANT_WITH_WARMUP: get_constant_schedule_with_warmup,
    SchedulerType.INVERSE_SQRT: get_inverse_sqrt_schedule,
    SchedulerType.REDUCE_ON_PLATEAU: get_reduce_on_plateau_schedule,
    SchedulerType.COSINE_WITH_MIN_LR: get_cosine_with_min_lr_schedule_with_warmup,
    SchedulerType.COSINE_WARMUP_WITH_MIN_LR: get_cosine_with_min_lr_schedule_with_warmup_lr_rate,
    SchedulerType.WARMUP_STABLE_DECAY: get_wsd_schedule,
}
# What a schedule has no argument for.
WITHOUT_STEPS = {SchedulerType.CONSTANT_WITH_WARMUP, SchedulerType.INVERSE_SQRT}
WITHOUT_WARMUP = {SchedulerType.CONSTANT, SchedulerType.REDUCE_ON_PLATEAU}


def get_scheduler(
    name: str | SchedulerType,
    optimizer: Optimizer,
    num_warmup_steps: int | None = None,
    num_training_steps: int | None = None,
    scheduler_specific_kwargs: Mapping[str, Any] | None = None,
) -> LRScheduler | ReduceLROnPlateau:
    """Return the schedule of a name, such as "linear" or "cosine".

    Args:  scheduler_specific_kwargs: further arguments of the schedule's function

    Raises:  ArgumentError for an unknown name, and a number of steps that the schedule needs and that is missing;
             TypeError for an argument that it does not have
    """
    kind = SchedulerType(name)
    options: dict[str, Any] = dict(scheduler_specific_kwargs or {})
    if kind not in WITHOUT_WARMUP:
        if num_warmup_steps is None:
            raise ArgumentError(f"the schedule {kind.value} needs num_warmup_steps")
        options["num_warmup_steps"] = num_warmup_steps
        if kind not in WITHOUT_STEPS:
            if num_training_steps is None and kind != SchedulerType.WARMUP_STABLE_DECAY:
                raise ArgumentError(f"the schedule {kind.value} needs num_training_steps")
            options["num_training_steps"] = num_training_steps
    function = TYPE_TO_SCHEDULER_FUNCTION[kind]
    return function(optimizer) if kind == SchedulerType.CONSTANT else function(optimizer, **options)
