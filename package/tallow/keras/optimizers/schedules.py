"""Learning rate schedules: functions of the step, passed to an optimizer as `learning_rate`."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, floor, log, pi
from typing import Any, ClassVar

from tallow.errors import ArgumentError
from tallow.keras.lookup import classes_of, find

__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "deserialize",
    "serialize",
]


class LearningRateSchedule:
    """A learning rate that depends on the step; a subclass defines `__call__(step)`."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ()  # attributes that get_config() saves and the constructor takes

    def __call__(self, step: Any) -> float:
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(step)")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {name: getattr(self, name) for name in self.ARGUMENTS}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LearningRateSchedule:
        """Create a schedule from its configuration."""
        return cls(**config)


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate · decay_rate^(step / decay_steps); `staircase` rounds the exponent down."""

    ARGUMENTS = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase", "name")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str = "ExponentialDecay",
    ) -> None:
        _check_steps(name, decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: Any) -> float:
        return self.initial_learning_rate * self.decay_rate ** _periods(step, self.decay_steps, self.staircase)


class InverseTimeDecay(LearningRateSchedule):
    """initial_learning_rate / (1 + decay_rate · step / decay_steps); `staircase` rounds the quotient down."""

    ARGUMENTS = ExponentialDecay.ARGUMENTS

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str = "InverseTimeDecay",
    ) -> None:
        _check_steps(name, decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: Any) -> float:
        return self.initial_learning_rate / (1 + self.decay_rate * _periods(step, self.decay_steps, self.staircase))


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to and including step boundaries[i], and the last value after all boundaries."""

    ARGUMENTS = ("boundaries", "values", "name")

    def __init__(self, boundaries: Sequence[float], values: Sequence[float], name: str = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ArgumentError(
                f"PiecewiseConstantDecay: {len(boundaries)} boundaries and {len(values)} values",
                hint="pass one more value than boundaries",
            )
        self.boundaries = list(boundaries)
        self.values = list(values)
        self.name = name

    def __call__(self, step: Any) -> float:
        return float(self.values[sum(int(step) > boundary for boundary in self.boundaries)])


class PolynomialDecay(LearningRateSchedule):
    """(initial - end) · (1 - step / decay_steps)^power + end, and the end rate after `decay_steps`.

    Args:
        cycle: after `decay_steps`, restart with a period extended to the next multiple of `decay_steps`.
    """

    ARGUMENTS = ("initial_learning_rate", "decay_steps", "end_learning_rate", "power", "cycle", "name")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        _check_steps(name, decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle
        self.name = name

    def __call__(self, step: Any) -> float:
        step, steps = int(step), self.decay_steps
        if self.cycle:
            steps *= max(-(-step // steps), 1)
        else:
            step = min(step, steps)
        drop = self.initial_learning_rate - self.end_learning_rate
        return drop * (1 - step / steps) ** self.power + self.end_learning_rate


class CosineDecay(LearningRateSchedule):
    """Half a cosine wave from the initial rate to alpha times it, after an optional linear warmup.

    Args:
        decay_steps: the number of steps of the decay, after the warmup.
        alpha: the lowest rate, as a fraction of the highest.
        warmup_target: the rate at the end of the warmup, which takes `warmup_steps`; None for no warmup.

    Source:  Loshchilov & Hutter 2016, arXiv:1608.03983
    """

    ARGUMENTS = ("initial_learning_rate", "decay_steps", "alpha", "name", "warmup_target", "warmup_steps")

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: float | None = None,
        warmup_steps: int = 0,
    ) -> None:
        _check_steps(name, decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.alpha = alpha
        self.name = name
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> float:
        step, highest = int(step), self.initial_learning_rate
        if self.warmup_target is not None:
            if step < self.warmup_steps:
                return highest + (self.warmup_target - highest) * step / self.warmup_steps
            step, highest = step - self.warmup_steps, self.warmup_target
        return highest * _cosine_decay(min(step, self.decay_steps) / self.decay_steps, self.alpha)


class CosineDecayRestarts(LearningRateSchedule):
    """`CosineDecay` with restarts; each period is `t_mul` times as long and starts at `m_mul` times the rate.

    Source:  Loshchilov & Hutter 2016, arXiv:1608.03983
    """

    ARGUMENTS = ("initial_learning_rate", "first_decay_steps", "t_mul", "m_mul", "alpha", "name")

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: int,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        _check_steps(name, first_decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name

    def __call__(self, step: Any) -> float:
        progress = int(step) / self.first_decay_steps  # in units of the first period
        if self.t_mul == 1:
            restarts = floor(progress)
            progress -= restarts
        else:
            restarts = floor(log(1 - progress * (1 - self.t_mul)) / log(self.t_mul))
            period_start = (1 - self.t_mul**restarts) / (1 - self.t_mul)
            progress = (progress - period_start) / self.t_mul**restarts
        return self.initial_learning_rate * _cosine_decay(progress, self.alpha, self.m_mul**restarts)


def _cosine_decay(fraction: float, alpha: float, height: float = 1.0) -> float:
    """Return the cosine decay from `height` to alpha at a fraction of the period."""
    return (1 - alpha) * height * (1 + cos(pi * fraction)) / 2 + alpha


def _periods(step: Any, decay_steps: int, staircase: bool) -> float:
    return int(step) // decay_steps if staircase else int(step) / decay_steps


def _check_steps(name: str, steps: float) -> None:
    if steps <= 0:
        raise ArgumentError(f"{name}: a period of {steps} steps", hint="use a positive number of steps")


SCHEDULES = classes_of(globals(), LearningRateSchedule)


def serialize(learning_rate_schedule: LearningRateSchedule) -> dict[str, Any]:
    """Return the class name and arguments of a schedule, for `deserialize`."""
    return {"class_name": type(learning_rate_schedule).__name__, "config": learning_rate_schedule.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> LearningRateSchedule:
    """Return the schedule that `serialize` described.

    Raises:  ArgumentError for a class that is neither a known schedule nor in `custom_objects`
    """
    return find(config["class_name"], SCHEDULES | (custom_objects or {}), "a schedule").from_config(config["config"])
