"""Base class of the schedulers: stepping, setting learning rates, and the state."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, InvalidKeyError, TallowError, warn
from tallow.optim.optimizer import Group, Optimizer
from tallow.optim.state_checks import fault
from tallow.tape.graph import note_write


class LRScheduler:
    """Set the learning rates of an optimizer over time, as torch.optim.lr_scheduler.LRScheduler.

    A subclass defines `get_lr`, which returns the learning rates at `last_epoch`, usually from those of the previous
    epoch, so that schedulers can be chained. It may define `_get_closed_form_lr`, which computes them from `base_lrs`
    alone.

    Args:
        last_epoch: -1 to start; otherwise the epoch to resume from, with "initial_lr" in each of the optimizer's
            groups.

    Raises:  ArgumentTypeError for anything but an Optimizer
    """

    CHOICES: ClassVar[Mapping[str, Collection[str]]] = {}  # valid values of string attributes
    INFINITE: ClassVar[Collection[str]] = ()  # attributes that may be infinite

    _is_initial = False  # True during the first step, which the constructor takes

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = as_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy_value(group["lr"]))
            elif "initial_lr" not in group:
                raise InvalidKeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}], to resume at last_epoch={last_epoch}",
                    hint="load the optimizer's state first, or start with last_epoch=-1",
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """Return each group's learning rate at `last_epoch`, for `step`; `get_last_lr` returns the current one."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def get_last_lr(self) -> list[Any]:
        """Return the current learning rate of each group."""
        return self._last_lr

    @recorded_whole
    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch; call it after the optimizer's step.

        Args:
            epoch: jump to this epoch, with the closed form if there is one; deprecated in PyTorch.
        """
        if self._step_count == 1 and not self.optimizer._opt_called:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value of the learning "
                "rate schedule is skipped; call them in the opposite order"
            )
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set_lrs(self.get_lr() if closed_form is None else closed_form())

    def _set_lrs(self, lrs: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of `state_dict()`, from tallow or PyTorch.

        Raises:  CheckpointError for values with which the schedule cannot continue; then nothing changes
        """
        self._check_values(state_dict)
        self._restore(state_dict)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise CheckpointError if this is not the state of such a scheduler; nothing changes."""
        own = self.state_dict()
        problems = [f"  missing     {name}" for name in own if name not in state_dict]
        problems += [f"  unexpected  {name}" for name in state_dict if name not in own]
        self._raise_problems(problems)
        self._check_values(state_dict)

    def _restore(self, state_dict: dict[str, Any]) -> None:
        """Set the attributes, which are valid."""
        self.__dict__.update(state_dict)

    def _raise_problems(self, problems: list[str]) -> None:
        if problems:
            raise CheckpointError(
                f"this is not the state of a {type(self).__name__}\n" + "\n".join(problems),
                hint="create the same kind of scheduler that was saved",
            )

    def _check_values(self, state_dict: dict[str, Any]) -> None:
        """Raise CheckpointError unless the values have the right kinds and a step from them succeeds."""
        own = self.state_dict()
        faults = ((name, self._fault(name, own[name], value)) for name, value in state_dict.items() if name in own)
        self._raise_problems([f"  {name} {problem}" for name, problem in faults if problem])
        trial = self._trial_copy(_copy_optimizer(self.optimizer))
        trial.__dict__.update(copy.deepcopy({n: v for n, v in state_dict.items() if n not in self._delegated_names()}))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial._take_trial_step()
        except TallowError:
            pass  # errors of the schedule itself, such as that it has ended
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._raise_problems([f"  the next step fails: {type(error).__name__}: {error}"])

    def _fault(self, name: str, own: Any, value: Any) -> str | None:
        """Return why a value of a state cannot replace this scheduler's own, or None if it can."""
        problem = fault(own, value, infinite=name in self.INFINITE)
        if problem is None and value != own and name in self.CHOICES and value not in self.CHOICES[name]:
            return f"is {value!r:.80}; expected one of {', '.join(self.CHOICES[name])}"
        return problem

    def _delegated_names(self) -> tuple[str, ...]:
        """Return the entries of a state that are not attributes, but belong to other objects."""
        return ()

    def _trial_copy(self, optimizer: Optimizer) -> LRScheduler:
        """Return a copy with another optimizer, for trial steps."""
        duplicate = copy.copy(self)
        duplicate.optimizer = optimizer
        return duplicate

    def _take_trial_step(self) -> None:
        """Take the next step with any input it needs, as a trial."""
        self.step()


def _copy_optimizer(optimizer: Optimizer) -> Optimizer:
    """Return an optimizer with the same groups, whose options can change without affecting the original.

    It is none of the original's class: one that wraps another optimizer would change the groups of that one.
    """
    duplicate = object.__new__(Optimizer)
    duplicate.__dict__.update(vars(optimizer) | {"defaults": optimizer.defaults})
    duplicate.param_groups = [
        {name: _copy_value(value) for name, value in group.items()} for group in optimizer.param_groups
    ]
    return duplicate


def as_optimizer(optimizer: Any) -> Optimizer:
    """Return `optimizer`; raise ArgumentTypeError if it is not an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def values_of(optimizer: Optimizer, name: str) -> list[Any]:
    """Return an option of each group; tensors are copied, so that later changes do not affect them."""
    return [_copy_value(group[name]) for group in optimizer.param_groups]


def _copy_value(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def set_value(group: Group, name: str, value: Any) -> None:
    """Set an option; a tensor changes in place."""
    current = group[name]
    if isinstance(current, Tensor):
        current.array[...] = float(value)
        note_write(current)
    else:
        group[name] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return one value per group, from a single value or a sequence."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [_copy_value(value) for _ in range(groups)]
    if len(value) != groups:
        raise ArgumentError(
            f"{name} must have the same length as optimizer.param_groups; it has {len(value)} values, param_groups has "
            f"{groups}"
        )
    return [_copy_value(v) for v in value]


def check_one_each(name: str, states: Any, own: Sequence[Any]) -> None:
    """Raise CheckpointError unless there are as many states as parts."""
    if not isinstance(states, list) or len(states) != len(own):
        raise CheckpointError(
            f"{name}: expected a list of {len(own)} states", hint="create it with as many parts as the saved one"
        )
