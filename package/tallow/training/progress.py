"""Showing how a run gets on, and stopping it in good order."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

    def keep(number: int, frame: Any) -> None:
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
    with interruption() as stop:
        steps = training.run(stop)
        if quiet:
            for _ in steps:
                pass
        elif sys.stderr.isatty() and find_spec("tqdm") is not None:
            _show_bar(training, steps, describe, names)
        else:
            _show_lines(training, steps, describe, names, every, tokens)
    return training.step == training.settings.steps


def _show_bar(
    training: Training,
    steps: Iterator[tuple[float, ...]],
    describe: Callable[[list[float]], str],
    names: Sequence[str],
) -> None:
    reported = len(training.curve)
    total = training.settings.steps
    with progress_bar()(total=total, initial=training.step, unit="step", dynamic_ncols=True) as bar:
        for losses in steps:
            bar.update()
            bar.set_postfix({name: f"{loss:.3f}" for name, loss in zip(names, losses, strict=True)}, refresh=False)
            for row in training.curve[reported:]:
                bar.write(describe(row), file=sys.stderr)
            reported = len(training.curve)


def _show_lines(
    training: Training,
    steps: Iterator[tuple[float, ...]],
    describe: Callable[[list[float]], str],
    names: Sequence[str],
    every: int,
    tokens: int,
) -> None:
    reported = len(training.curve)
    since, last = time.perf_counter(), training.step
    for losses in steps:
        if training.step % every == 0:
            now = time.perf_counter()
            rate = (training.step - last) / (now - since)
            speed = f"{rate * tokens:.0f} tokens/s" if tokens else f"{rate:.2f} steps/s"
            said = ", ".join(f"{name} {loss:.4f}" for name, loss in zip(names, losses, strict=True))
            print(f"step {training.step}: {said}, {speed}", file=sys.stderr, flush=True)
            since, last = now, training.step
        for row in training.curve[reported:]:
            print(describe(row), file=sys.stderr, flush=True)
        reported = len(training.curve)
