"""Show the progress of a run, and stop it cleanly on signals."""

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
    """Return the class tqdm.  Raises: MissingPackageError"""
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingPackageError("tqdm", "the progress bar", "train") from error
    return tqdm


class Stop:
    """A flag that is set by a signal to stop a run.

    Attributes:
        signal: number of the signal; None if there was none.
    """

    signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None


@contextmanager
def interruption() -> Iterator[Stop]:
    """Record the first Ctrl-C, SIGTERM or SIGHUP in a `Stop`; a second one takes its usual effect.

    Ignored signals stay ignored, such as SIGHUP under nohup and SIGINT in background jobs of a shell.
    """
    stop = Stop()
    previous: dict[int, Any] = {}

    def record(number: int, frame: Any) -> None:
        if stop.signal is None:
            stop.signal = number
        elif callable(previous[number]):
            previous[number](number, frame)  # raises KeyboardInterrupt
        else:
            sys.exit(128 + number)  # exits through `finally` blocks, which remove unfinished files

    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            previous[number] = signal.signal(number, record)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
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
    """Take the remaining steps and show progress on stderr: a bar on a terminal with tqdm, else lines.

    Args:
        describe: function from a row of the run's curve to text.
        names: names of the losses.
        every: number of steps per line.
        tokens: tokens per step, to compute the speed.
        quiet: show nothing.
        stop: when it returns True, the run is saved and ends; None means on Ctrl-C, SIGTERM or SIGHUP.

    Returns: whether the run is complete; a stopped run is saved

    Raises:  as in `Training.run`
    """
    with ExitStack() as stack:
        stop = stack.enter_context(interruption()) if stop is None else stop
        if quiet:
            view: _Lines | _Bar | None = None
        elif sys.stderr.isatty() and find_spec("tqdm") is not None:
            view = _Bar(training, tokens, stack)
        else:
            view = _Lines(training, tokens, every)
        reported = len(training.curve)
        for losses in training.run(stop):
            if view is not None:
                view.step([f"{name} {loss:.4f}" for name, loss in zip(names, losses, strict=True)])
                for row in training.curve[reported:]:
                    view.write(describe(row))
                reported = len(training.curve)
    return training.step == training.settings.steps


class _Lines:
    """Progress as lines, one every few steps."""

    def __init__(self, training: Training, tokens: int, every: int) -> None:
        self._training, self._tokens, self._every = training, tokens, every
        self._since, self._last = time.perf_counter(), training.step

    def step(self, losses: list[str]) -> None:
        step, now = self._training.step, time.perf_counter()
        if step % self._every:
            return
        rate = (step - self._last) / (now - self._since)
        speed = f"{rate * self._tokens:.0f} tokens/s" if self._tokens else f"{rate:.2f} steps/s"
        self.write(f"step {step}: " + ", ".join([*losses, speed]))
        self._since, self._last = now, step

    def write(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class _Bar:
    """Progress as a tqdm bar, which `stack` closes."""

    def __init__(self, training: Training, tokens: int, stack: ExitStack) -> None:
        steps = training.settings.steps
        bar = progress_bar()(total=steps, initial=training.step, unit="step", dynamic_ncols=True)
        self._bar, self._tokens = stack.enter_context(bar), tokens

    def step(self, losses: list[str]) -> None:
        self._bar.update()
        rate = self._bar.format_dict["rate"] or 0.0
        speed = [f"{rate * self._tokens:.0f} tokens/s"] if self._tokens else []
        self._bar.set_postfix_str(", ".join([*losses, *speed]), refresh=False)

    def write(self, line: str) -> None:
        self._bar.write(line, file=sys.stderr)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """Return values as a line of block characters; more than `width` values are averaged in groups."""
    count = min(width, len(values))
    edges = [i * len(values) // count for i in range(count + 1)] if count else []
    means = [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
    if not means:
        return ""
    low, high = min(means), max(means)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((mean - low) / step)] for mean in means)
