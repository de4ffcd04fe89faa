"""The metrics of every epoch, as lists and as plots."""

from __future__ import annotations

import io
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.callbacks.callback import Callback, Logs
from tallow.training.plotting import figure_class


class History(Callback):
    """The result of `fit`.

    Attributes:
        epoch: the numbers of the epochs, from 0.
        history: maps the name of a metric to its values after each epoch; validation metrics start with "val_".
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}
        self._epochs: dict[str, list[int]] = {}  # epochs of the values in `history`, as a metric may be missing in some

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        model.history = self  # set at the start, so that it exists even if training is interrupted

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
            self._epochs.setdefault(name, []).append(epoch)

    def plot(self, metrics: Any = None) -> Any:
        """Return a matplotlib figure with a chart per metric: training as a solid line, validation as a dashed line.

        A notebook displays it; elsewhere call `figure.savefig("curves.png")`.

        Args:
            metrics: the names of the metrics to plot; None plots all.

        Raises:  ArgumentError before the first epoch or for an unknown metric; MissingPackageError without matplotlib
        """
        make_figure = _figure_class()
        if not self.history:
            raise ArgumentError("history.plot(): there are no epochs to plot yet", hint="call model.fit(...) first")
        available = list(dict.fromkeys(name.removeprefix("val_") for name in self.history))
        names = available if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
        if missing := [name for name in names if name not in available]:
            raise ArgumentError(
                f"history.plot(): no metric {missing[0]!r}", hint=f"available metrics: {', '.join(available)}"
            )
        figure = make_figure(figsize=(4.8 * len(names), 3.6), layout="constrained")
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            for key, label, style in ((name, "training", "-"), (f"val_{name}", "validation", "--")):
                if values := self.history.get(key):
                    epochs = [epoch + 1 for epoch in self._epochs.get(key, range(len(values)))]
                    axes.plot(epochs, values, style, label=label, marker="." if len(values) < 20 else "")
            axes.set_title(name.replace("_", " "))
            axes.set_xlabel("epoch")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
            axes.legend()
        return figure


def _figure_class() -> Any:
    """Return matplotlib's Figure with a PNG representation for notebooks, which otherwise need pyplot."""

    class NotebookFigure(figure_class("history.plot()")):  # type: ignore[misc]
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return NotebookFigure
