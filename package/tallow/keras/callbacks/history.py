"""The metrics of every epoch, as lists and as curves."""

from __future__ import annotations

import io
from typing import Any

from tallow.errors import ArgumentError
from tallow.keras.callbacks.callback import Callback, Logs
from tallow.plotting import figure_class


class History(Callback):
    """What `fit` returns.

    Attributes:
        epoch: the numbers of the epochs, from 0.
        history: by name of a metric, "val_" before those of the validation data, its value after each epoch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}
        self._epochs: dict[str, list[int]] = {}  # of the values in `history`: not every metric comes every epoch

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        model.history = self  # there from the start, so that it is there when training is interrupted

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
            self._epochs.setdefault(name, []).append(epoch)

    def plot(self, metrics: Any = None) -> Any:
        """A matplotlib figure with a chart for each metric: its curve in training and, dashed, in validation.

        A notebook shows it; elsewhere `figure.savefig("curves.png")` does.

        Args:
            metrics: the names of those to show; all of them if it is None.

        Raises:  ArgumentError without an epoch, or for a metric that is not there; MissingPackageError
            without matplotlib
        """
        make_figure = _figure_class()
        if not self.history:
            raise ArgumentError("history.plot(): there is no epoch to show yet", mend="call model.fit(...) first")
        every = list(dict.fromkeys(name.removeprefix("val_") for name in self.history))
        names = every if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
        if missing := [name for name in names if name not in every]:
            raise ArgumentError(f"history.plot(): no metric {missing[0]!r}", mend=f"there are: {', '.join(every)}")
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
    """matplotlib's Figure, able to show itself in a notebook: without pyplot, which would keep it, none knows how."""

    class ShownFigure(figure_class("history.plot()")):  # type: ignore[misc]
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return ShownFigure
