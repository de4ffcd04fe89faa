"""The base of the schedulers: when they step, what they set, and their state."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from tallow.autograd.graph import note_write
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError, TallowError
from tallow.optim.loaded import fault
from tallow.optim.optimizer import Group, Optimizer
from tallow.tensor import Tensor


class LRScheduler:
    """Sets the learning rates of an optimizer over time, as torch.optim.lr_scheduler.LRScheduler.

    A subclass defines `get_lr`: the learning rates at `last_epoch`, as a rule from those one epoch before, so that
    schedulers can be chained. It may define `_get_closed_form_lr`: the same from `base_lrs` alone.

    Args:
        last_epoch: -1 to start; else where to resume, with "initial_lr" in each of the optimizer's groups.

    Raises: ArgumentTypeError for what is not an Optimizer.
    """

    CHOICES: ClassVar[Mapping[str, Collection[str]]] = {}  # what attributes that are words may be

    _is_initial = False  # within the first step, which the constructor takes

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = as_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise MissingInitialLr(
                    f"param 'initial_lr' is not specified in param_groups[{i}], to resume at last_epoch={last_epoch}",
                    mend="load the optimizer's state first, or start with last_epoch=-1",
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
        """The learning rate of each group at `last_epoch`; for `step` to call. Ask `get_last_lr` for what is set."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The learning rate of each group that was set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch; call it after the optimizer's step.

        Args:
            epoch: go there instead, by the closed form where there is one; PyTorch advises against it.
        """
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value of the learning "
                "rate schedule is skipped; call them in the opposite order",
                stacklevel=2,
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
        """All attributes but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned, here or in PyTorch.

        Raises: CheckpointError for values that the schedule cannot go on with, before anything is changed.
        """
        self._check_values(state_dict)
        self._take_over(state_dict)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise CheckpointError for what is not the state of a scheduler like this one, and change nothing."""
        own = self.state_dict()
        problems = [f"  missing     {name}" for name in own if name not in state_dict]
        problems += [f"  unexpected  {name}" for name in state_dict if name not in own]
        self._refuse(problems)
        self._check_values(state_dict)

    def _take_over(self, state_dict: dict[str, Any]) -> None:
        """Set the attributes, which have been checked."""
        self.__dict__.update(state_dict)

    def _refuse(self, problems: list[str]) -> None:
        if problems:
            raise CheckpointError(
                f"it is not the state of a {type(self).__name__}\n" + "\n".join(problems),
                mend="make the scheduler that it was saved from",
            )

    def _check_values(self, state_dict: dict[str, Any]) -> None:
        """Raise CheckpointError unless the values are of their kinds, and a step can be taken from them."""
        own = self.state_dict()
        faults = ((name, self._fault(name, own[name], value)) for name, value in state_dict.items() if name in own)
        self._refuse([f"  {name} {wrong}" for name, wrong in faults if wrong])
        trial = self._beside(_double(self.optimizer))
        trial.__dict__.update(copy.deepcopy({n: v for n, v in state_dict.items() if n not in self._handed_on()}))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial._try()
        except TallowError:
            pass  # what the schedule says itself: that it is at its end
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._refuse([f"  the next step fails: {type(error).__name__}: {error}"])

    def _fault(self, name: str, own: Any, value: Any) -> str | None:
        """What keeps a value of a state from standing in place of this scheduler's own, if anything does."""
        wrong = fault(own, value, infinite=name == "best")
        if wrong is None and value != own and name in self.CHOICES and value not in self.CHOICES[name]:
            return f"is {value!r:.80}; expected one of {', '.join(self.CHOICES[name])}"
        return wrong

    def _handed_on(self) -> tuple[str, ...]:
        """The entries of a state that are no attributes, but go to other objects."""
        return ()

    def _beside(self, optimizer: Optimizer) -> LRScheduler:
        """A copy on another optimizer, to try things on."""
        double = copy.copy(self)
        double.optimizer = optimizer
        return double

    def _try(self) -> None:
        """The next step, whatever may be asked for with it."""
        self.step()


def _double(optimizer: Optimizer) -> Optimizer:
    """An optimizer of the same groups, whose options can be set without changing the other's."""
    double = copy.copy(optimizer)
    double.param_groups = [{name: _copied(value) for name, value in group.items()} for group in optimizer.param_groups]
    return double


class MissingInitialLr(ArgumentError, KeyError):
    """A group without an initial_lr. PyTorch raises KeyError."""

    __str__ = Exception.__str__  # KeyError's would show the message as a repr


def as_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def values_of(optimizer: Optimizer, name: str) -> list[Any]:
    """An option of each group; a learning rate that is a Tensor is copied, so that it stays what it is."""
    return [_copied(group[name]) for group in optimizer.param_groups]


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def set_value(group: Group, name: str, value: Any) -> None:
    """Set an option, in place if it is a Tensor."""
    held = group[name]
    if isinstance(held, Tensor):
        held.array[...] = float(value)
        note_write(held)
    else:
        group[name] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, from one for all or a sequence of them."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [_copied(value) for _ in range(groups)]
    if len(value) != groups:
        raise ArgumentError(
            f"{name} must have the same length as optimizer.param_groups; it has {len(value)} values, param_groups has "
            f"{groups}"
        )
    return [_copied(v) for v in value]


def check_one_each(name: str, states: Any, own: Sequence[Any]) -> None:
    """Refuse the states of another number of parts than there are."""
    if not isinstance(states, list) or len(states) != len(own):
        raise CheckpointError(f"{name}: expected a list of {len(own)} states", mend="make it of as many as it had")
