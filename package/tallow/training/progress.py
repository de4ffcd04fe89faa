"""Showing how a run gets on, and stopping it in good order."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from tallow.errors import MissingPackageError
from tallow.training.run import Training

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
BLOCKS = "▁▂▃▄▅▆▇█"


def progress_bar() -> Any:
    """The class tqdm.  Raises: MissingPackageError"""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingPackageError("tqdm", "the progress bar", "train") from error
    return tqdm


class Stop:
    """Whether a signal has asked a run to stop.

    Attributes:
        signal: its number; None while there was none.
    """

    signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None


@contextmanager
def interruption() -> Iterator[Stop]:
    """Within it the first Ctrl-C, SIGTERM or SIGHUP is kept, for a run to `stop` by; the second one acts as ever.

    A signal that is ignored, as nohup does with SIGHUP and a shell with the SIGINT of what it starts with &, stays so.
    """
    stop = Stop()
    before: dict[int, Any] = {}

    def keep(number: int, frame: Any) -> None:
        if stop.signal is None:
            stop.signal = number
        elif callable(before[number]):
            before[number](number, frame)  # raises KeyboardInterrupt
        else:
            sys.exit(128 + number)  # after what is being written is removed

    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, keep)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(
    training: Training,
    describe: Callable[[list[float]], str],
    names: Sequence[str] = ("loss",),
    *,
    every: int = 10,
    tokens: int = 0,
    quiet: bool = False,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """Take the remaining steps and show them on stderr: a bar where that is a terminal and there is tqdm, else lines.

    Args:
        describe: what to say of a row of the run's curve.
        names: of the losses.
        every: how many steps a line is for.
        tokens: of each step, to tell the speed by.
        quiet: show nothing.
        stop: ends the run after a step, and saves it; None means on Ctrl-C, SIGTERM or SIGHUP, as `interruption` says.

    Returns: whether the run has come to its end; if it was stopped, it is saved

    Raises:  as `Training.run`
    """
    with ExitStack() as shown:
        stop = shown.enter_context(interruption()) if stop is None else stop
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


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Values as a line of blocks, from the lowest to the highest of them; more than `width` are averaged in groups."""
    count = min(width, len(values))
    edges = [i * len(values) // count for i in range(count + 1)] if count else []
    means = [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
    if not means:
        return ""
    low, high = min(means), max(means)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((mean - low) / step)] for mean in means)
