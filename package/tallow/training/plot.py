"""The losses of a run as a picture."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow.errors import ArgumentError
from tallow.io.atomic import atomic_write
from tallow.plotting import figure_class
from tallow.training.run import Training

FORMATS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
MARKED = 20  # fewer points are drawn as dots too


def check_plot(path: Path) -> None:
    """See, before a long run, that a picture can be drawn and written there.

    Raises:  MissingPackageError without matplotlib; ArgumentError for another format; OSError
    """
    figure_class("a picture of the loss")
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"{path}: no format of a picture", mend=f"end its name in {', '.join(FORMATS)}")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # as `atomic_write` makes one
            pass
    except OSError as error:
        error.filename = str(path)
        raise


def plot_losses(training: Training, names: Sequence[str], path: Path) -> None:
    """Draw the losses of all steps so far and, dashed, what `validate` said.

    Args:  names: of the training losses.

    Raises:  MissingPackageError without matplotlib; OSError
    """
    figure = figure_class("a picture of the loss")(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for column, name in enumerate(names, 1):
        _line(axes, [(row[0], row[column]) for row in training.history], name, "-")
    _line(axes, [(row[0], row[-1]) for row in training.curve if len(row) > len(names) + 1], "held out", "--")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.grid(alpha=0.3)
    axes.legend()
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=DOTS_PER_INCH)


def _line(axes: Any, points: Sequence[tuple[float, float]], label: str, style: str) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), style, label=label, marker="." if len(points) < MARKED else "")
