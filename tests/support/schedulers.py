"""One instance of every learning-rate scheduler, for tests that cover all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.optim import lr_scheduler


def one_cycle(optimizer: Any) -> Any:
    momentum = {"betas", "momentum"} & optimizer.param_groups[0].keys()
    return lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=20, cycle_momentum=bool(momentum))


SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 7, 7]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.5, 7),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.3, total_iters=8),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.7),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.9),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.001, 0.1, 3),
    "OneCycleLR": one_cycle,
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.5, 7), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.9)], [7]
    ),
}
