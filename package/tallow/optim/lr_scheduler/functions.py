"""Schedules defined by a function of the epoch."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.optim.lr_scheduler.scheduler import LRScheduler, as_optimizer, check_one_each, values_of
from tallow.optim.optimizer import Optimizer
from tallow.optim.state_checks import attributes_fault

Factor = Callable[[int], float]


class _FunctionLR(LRScheduler):
    """Base class with one function per group; the state has the attributes of callable objects, not functions."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1) -> None:
        groups = len(as_optimizer(optimizer).param_groups)
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ArgumentError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise ArgumentTypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        functions = [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": functions}

    def _delegated_names(self) -> tuple[str, ...]:
        return ("lr_lambdas",)

    def _fault(self, name: str, own: Any, value: Any) -> str | None:
        if name != "lr_lambdas":
            return super()._fault(name, own, value)
        check_one_each(name, value, own)
        return next(filter(None, map(attributes_fault, own, value)), None)

    def _restore(self, state_dict: dict[str, Any]) -> None:
        super()._restore({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_FunctionLR):
    """Set the learning rate to initial_lr · lr_lambda(epoch).

    Args:    as torch.optim.lr_scheduler.LambdaLR
    """

    def get_lr(self) -> list[Any]:
        return [lr * function(self.last_epoch) for function, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """Multiply the learning rate by lr_lambda(epoch) every epoch.

    Args:    as torch.optim.lr_scheduler.MultiplicativeLR
    """

    def get_lr(self) -> list[Any]:
        lrs = values_of(self.optimizer, "lr")
        if self._is_initial:
            return lrs
        return [lr * function(self.last_epoch) for function, lr in zip(self.lr_lambdas, lrs, strict=True)]
