"""Showing how a run gets on, and stopping it in good order."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

from tallow.errors import MissingPackageError
from tallow.training.run import Training


def progress_bar() -> Any:
    """The class tqdm.  Raises: MissingPackageError"""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingPackageError("tqdm", "the progress bar", "train") from error
    return tqdm


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Within it the first Ctrl-C is kept, for a run to `stop` by; the second one is raised, as ever."""
    asked = False

    def keep(_number: int, _frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = signal.signal(signal.SIGINT, keep)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def follow(
    training: Training,
    describe: Callable[[list[float]], str],
    names: Sequence[str] = ("loss",),
    *,
    every: int = 10,
    tokens: int = 0,
    quiet: bool = False,
) -> bool:
    """Take the remaining steps and show them on stderr: a bar where that is a terminal and there is tqdm, else lines.

    Args:
        describe: what to say of a row of the run's curve.
        names: of the losses.
        every: how many steps a line is for.
        tokens: of each step, to tell the speed by.
        quiet: show nothing.

    Returns: whether the run has come to its end; if Ctrl-C has stopped it, it is saved

    Raises:  as `Training.run`
    """
    with interruption() as stop, ExitStack() as shown:
        if quiet:
            view: _Lines | _Bar | None = None
        elif sys.stderr.isatty() and find_spec("tqdm") is not None:
            view = _Bar(training, tokens, shown)
        else:
            view = _Lines(training, tokens, every)
        reported = len(training.curve)
        for losses in training.run(stop):
            if view is not None:
                view.step([f"{name} {loss:.4f}" for name, loss in zip(names, losses, strict=True)])
                for row in training.curve[reported:]:
                    view.say(describe(row))
                reported = len(training.curve)
    return training.step == training.settings.steps


class _Lines:
    """A line now and then."""

    def __init__(self, training: Training, tokens: int, every: int) -> None:
        self._training, self._tokens, self._every = training, tokens, every
        self._since, self._last = time.perf_counter(), training.step

    def step(self, losses: list[str]) -> None:
        step, now = self._training.step, time.perf_counter()
        if step % self._every:
            return
        rate = (step - self._last) / (now - self._since)
        speed = f"{rate * self._tokens:.0f} tokens/s" if self._tokens else f"{rate:.2f} steps/s"
        self.say(f"step {step}: " + ", ".join([*losses, speed]))
        self._since, self._last = now, step

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class _Bar:
    """tqdm's; it is closed with what was `shown`."""

    def __init__(self, training: Training, tokens: int, shown: ExitStack) -> None:
        steps = training.settings.steps
        bar = progress_bar()(total=steps, initial=training.step, unit="step", dynamic_ncols=True)
        self._bar, self._tokens = shown.enter_context(bar), tokens

    def step(self, losses: list[str]) -> None:
        self._bar.update()
        rate = self._bar.format_dict["rate"] or 0.0
        speed = [f"{rate * self._tokens:.0f} tokens/s"] if self._tokens else []
        self._bar.set_postfix_str(", ".join([*losses, *speed]), refresh=False)

    def say(self, line: str) -> None:
        self._bar.write(line, file=sys.stderr)
