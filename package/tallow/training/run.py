"""The base class of training runs: steps, learning rate schedule, validation and checkpoints."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tallow.amp.grad_scaler import GradScaler
from tallow.errors import ArgumentError, CheckpointError, NumericError
from tallow.io.checkpoint import load_checkpoint, save_checkpoint
from tallow.nn.module import Module
from tallow.nn.utils.clip_grad import clip_grad_norm_
from tallow.optim.lr_scheduler.functions import LambdaLR
from tallow.optim.optimizer import Optimizer
from tallow.random import Generator

# Settings that may change when a run is resumed: the weights do not depend on them.
CHANGEABLE = ("validate_every", "checkpoint_every")
POINTS = 500  # maximum length of the history: enough for a plot, small in a checkpoint


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings that determine a run. Equal settings give equal weights on the same kind of machine.

    Attributes:
        steps: number of optimizer steps.
        batch_size: samples per step.
        learning_rate: peak learning rate, reached linearly after `warmup_steps`.
        final_learning_rate: learning rate at the end, reached by cosine decay.
        clip_norm: maximum norm of all gradients.
        validate_every, checkpoint_every: intervals in steps.
    """

    seed: int = 1
    steps: int = 1000
    batch_size: int = 16
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    warmup_steps: int = 100
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = 1.0
    validate_every: int = 250
    checkpoint_every: int = 50


def learning_rate_factor(step: int, settings: Settings) -> float:
    """Return the learning rate factor of a step: linear warmup, then cosine decay."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, settings.steps - settings.warmup_steps)
    lowest = settings.final_learning_rate / settings.learning_rate
    return lowest + (1 - lowest) * (1 + math.cos(math.pi * done)) / 2


class Training(ABC):
    """A training run: module, optimizer and progress. A subclass defines how a step computes gradients.

    Args:
        module: module with all trained parameters.
        checkpoint: file that the run is saved to.
        generator: generator of the data order, if there is one.
        scaler: scaler of float16 losses.

    Attributes:
        model: the trained model; a subclass sets it.
        step: number of steps taken.
        curve: (step, mean of each training loss since the row before, and result of `validate`) at intervals.
        history: (step, mean of each training loss since the row before) at shorter intervals: at most `POINTS` rows.
        seconds: time spent in steps and validation, over all sessions.
    """

    model: Module

    def __init__(
        self,
        settings: Settings,
        module: Module,
        optimizer: Optimizer,
        checkpoint: Path,
        generator: Generator | None = None,
        scaler: GradScaler | None = None,
    ) -> None:
        self.settings = settings
        self.checkpoint = checkpoint
        self.step = 0
        self.seconds = 0.0
        self.curve: list[list[float]] = []
        self.history: list[list[float]] = []
        self._module, self._optimizer, self._generator = module, optimizer, generator
        self._scaler = GradScaler("cpu", enabled=False) if scaler is None else scaler
        self._scheduler = LambdaLR(optimizer, lambda step: learning_rate_factor(step, settings))
        self._sums: list[float] = []  # sums of the losses since the last row of `curve`
        self._recent: list[float] = []  # sums of the losses since the last row of `history`

    @abstractmethod
    def learn(self) -> Sequence[float]:
        """Compute the gradients of step `step` with `_scaler.scale(loss).backward()`, and return its losses."""

    @abstractmethod
    def validate(self) -> float | None:
        """Return the validation loss; None without validation data."""

    def agree(self, values: list[float]) -> list[float]:
        """Return the mean of the values over all processes."""
        return values

    def run(self, stop: Callable[[], bool] = lambda: False) -> Iterator[tuple[float, ...]]:
        """Take the remaining steps, and yield the losses of each.

        Args:  stop: called in each step; if it returns True, that step is the last, and is saved

        Raises:  NumericError if a loss or the gradients are not finite; the checkpoint is of an earlier step
        """
        settings, stopping = self.settings, False
        while self.step < settings.steps and not stopping:
            started = time.perf_counter()
            *losses, should_stop = self._take_step(stop)
            stopping = should_stop > 0
            self.step += 1
            self._sums = _add(self._sums, losses)
            self._add_to_history(losses)
            if self.step % settings.validate_every == 0 or self.step == settings.steps:
                self._add_to_curve()
            self.seconds += time.perf_counter() - started
            if self.step % settings.checkpoint_every == 0 or self.step == settings.steps or stopping:
                self.save()
            yield tuple(losses)

    def save(self) -> None:
        """Write the checkpoint, which replaces the previous one.  Raises: OSError"""
        save_checkpoint(
            self.checkpoint,
            **self._state(),
            settings=asdict(self.settings),
            scaler=self._scaler.state_dict(),
            step=self.step,
            seconds=self.seconds,
            curve=self.curve,
            sums=self._sums,
            history=self.history,
            recent=self._recent,
        )

    def resume(self) -> None:
        """Restore the state from the checkpoint.

        Raises:  ArgumentError if its settings differ; CheckpointError, OSError if it cannot be read
        """
        # Check the settings first: their differences are clearer than those of shapes that follow from them.
        progress = load_checkpoint(self.checkpoint)
        self._check_progress(progress)
        if others := differences(self.settings, progress["settings"], CHANGEABLE):
            raise ArgumentError(
                "\n".join([f"{self.checkpoint} was written with other settings", *others]),
                hint="pass the same options, or start over",
            )
        load_checkpoint(self.checkpoint, **self._state())
        self._scaler.load_state_dict(progress["scaler"])
        self.step, self.seconds = progress["step"], progress["seconds"]
        self.curve, self._sums = progress["curve"], progress["sums"]
        self.history, self._recent = progress["history"], progress["recent"]

    def _check_progress(self, progress: Mapping[str, Any]) -> None:
        """Raise CheckpointError if the checkpoint is not of a training run."""
        is_valid = {
            "settings": isinstance(progress.get("settings"), Mapping),
            "scaler": isinstance(progress.get("scaler"), dict),
            "step": type(progress.get("step")) is int and progress["step"] >= 0,
            "seconds": _are_numbers([progress.get("seconds")]),
            "curve": _are_rows(progress.get("curve")),
            "sums": _are_numbers(progress.get("sums")),
            "history": _are_rows(progress.get("history")),
            "recent": _are_numbers(progress.get("recent")),
        }
        if wrong := [name for name, is_entry_valid in is_valid.items() if not is_entry_valid]:
            raise CheckpointError(
                f"{self.checkpoint} is not the checkpoint of such a run: its {', '.join(wrong)} cannot be resumed",
                hint="start over, or use the run's own checkpoint",
            )

    def _take_step(self, stop: Callable[[], bool]) -> list[float]:
        """Take a step. Return the losses, and a positive number if any process wants to stop."""
        self._optimizer.zero_grad()
        losses = self.learn()
        self._scaler.unscale_(self._optimizer)
        norm = clip_grad_norm_(self._module.parameters(), self.settings.clip_norm).item()
        *losses, should_stop = self.agree([*losses, float(stop())])
        # float16 gradients overflow occasionally; the scaler skips such steps.
        if not all(map(math.isfinite, losses)) or not (math.isfinite(norm) or self._scaler.is_enabled()):
            values = ", ".join(f"{loss:g}" for loss in losses)
            raise NumericError(
                f"step {self.step + 1}: the loss is {values} and the norm of the gradients {norm:g}",
                hint=f"lower the learning rate; {self.checkpoint} is of an earlier step",
            )
        scale = self._scaler.get_scale()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if self._scaler.get_scale() >= scale:  # the optimizer has taken the step
            self._scheduler.step()
        return [*losses, should_stop]

    def _add_to_curve(self) -> None:
        since = self.step - (self.curve[-1][0] if self.curve else 0)
        validation = self.validate()
        means = [total / since for total in self._sums]
        self.curve.append([self.step, *means] + ([] if validation is None else [validation]))
        self._sums = []

    def _add_to_history(self, losses: Sequence[float]) -> None:
        self._recent = _add(self._recent, losses)
        every = math.ceil(self.settings.steps / POINTS)
        if self.step % every == 0 or self.step == self.settings.steps:
            since = self.step - (self.history[-1][0] if self.history else 0)
            self.history.append([self.step, *(total / since for total in self._recent)])
            self._recent = []

    def _state(self) -> dict[str, Any]:
        state = {"model": self._module, "optimizer": self._optimizer, "scheduler": self._scheduler}
        return state if self._generator is None else {**state, "generator": self._generator}


def _add(sums: Sequence[float], losses: Sequence[float]) -> list[float]:
    return [total + loss for total, loss in zip(sums or [0.0] * len(losses), losses, strict=True)]


def _are_rows(values: Any) -> bool:
    return isinstance(values, list) and all(bool(row) and _are_numbers(row) for row in values)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) in (int, float) for value in values)


def differences(own: Settings, theirs: Mapping[str, Any], ignored: Collection[str] = ()) -> list[str]:
    """Return a line for each setting, or entry of a mapping setting, that differs in `theirs`, except ignored ones."""
    here, there = _flat(asdict(own)), _flat(theirs)
    names = [name for name in here | there if name not in ignored and here.get(name) != there.get(name)]
    return [f"  {name}: {there.get(name)} there, {here.get(name)} here" for name in names]


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    inner = {name: value for name, value in settings.items() if isinstance(value, Mapping)}
    flat = {f"{name}.{key}": each for name, value in inner.items() for key, each in value.items()}
    return {name: value for name, value in settings.items() if name not in inner} | flat
