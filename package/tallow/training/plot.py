"""Plot the losses of a run."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow.errors import ArgumentError
from tallow.io.atomic import atomic_write
from tallow.training.plotting import figure_class
from tallow.training.run import Training

FORMATS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
MARKED = 20  # fewer points are also drawn as dots


def check_plot(path: Path) -> None:
    """Check, before a long run, that a plot can be drawn and written to `path`.

    Raises:  MissingPackageError without matplotlib; ArgumentError for another format; OSError
    """
    figure_class("a plot of the loss")
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"{path}: unknown image format", hint=f"use {', '.join(FORMATS)}")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # as in `atomic_write`
            pass
    except OSError as error:
        error.filename = str(path)
        raise


def plot_losses(training: Training, names: Sequence[str], path: Path) -> None:
    """Plot the training losses of all steps so far and, dashed, the validation loss.

    Args:  names: names of the training losses.

    Raises:  MissingPackageError without matplotlib; OSError
    """
    figure = figure_class("a plot of the loss")(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for column, name in enumerate(names, 1):
        _line(axes, [(row[0], row[column]) for row in training.history], name, "-")
    _line(axes, [(row[0], row[-1]) for row in training.curve if len(row) > len(names) + 1], "validation", "--")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.grid(alpha=0.3)
    axes.legend()
    image = io.BytesIO()
    figure.savefig(image, format=path.suffix[1:].lower(), dpi=DOTS_PER_INCH)
    with atomic_write(path) as file:
        file.write(image.getbuffer())


def _line(axes: Any, points: Sequence[tuple[float, float]], label: str, style: str) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), style, label=label, marker="." if len(points) < MARKED else "")
