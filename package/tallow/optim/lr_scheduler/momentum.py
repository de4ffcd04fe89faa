"""Momentum cycling of OneCycleLR and CyclicLR, opposite to the learning rate."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError
from tallow.optim.lr_scheduler.scheduler import per_group
from tallow.optim.optimizer import Group, Optimizer


def start_momentum(optimizer: Optimizer, lowest: Any, highest: Any, *, resuming: bool) -> bool:
    """Set the highest momentum, store both limits in the groups, and return whether the momentum is beta1.

    Raises:  ArgumentError if the optimizer has neither momentum nor betas
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ArgumentError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
            hint="pass cycle_momentum=False",
        )
    use_beta1 = "betas" in optimizer.defaults
    limits = per_group("base_momentum", optimizer, lowest), per_group("max_momentum", optimizer, highest)
    for group, low, high in zip(optimizer.param_groups, *limits, strict=True):
        if not resuming:
            set_momentum(group, high, use_beta1)
            group["max_momentum"], group["base_momentum"] = high, low
    return use_beta1


def set_momentum(group: Group, momentum: float, use_beta1: bool) -> None:
    """Set the momentum of a group, which is the first of betas if `use_beta1`."""
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
