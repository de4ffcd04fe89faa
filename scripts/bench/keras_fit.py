"""Overhead of tallow.keras's `fit` compared with a hand-written loop, for a model so small that overhead dominates.

Claims: natively a step of `fit` takes at most 1.5 times as long, twice as long with a metric and a progress bar, and
less than Keras on PyTorch, if that is installed.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import in_turn
from tallow import keras as tallow_keras
from tallow.nn import functional as F

NAME = "keras"
ROWS, SIZE = 3200, 32
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 20)).astype("float32")
Y = (X[:, 0] * X[:, 1] > 0).astype("int64")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def measure(options: dict[str, Any]) -> dict[str, Any]:
    runs = {
        "a loop by hand": _by_hand(_model(tallow_keras, [])),
        "fit": _fit(_model(tallow_keras, [])),
        "fit with accuracy": _fit(_model(tallow_keras, ["accuracy"])),
        "fit with accuracy and a bar": _fit(_model(tallow_keras, ["accuracy"]), verbose=1),
    }
    if importlib.util.find_spec("keras") and importlib.util.find_spec("torch"):
        os.environ["KERAS_BACKEND"] = "torch"
        import keras

        runs["Keras's fit with accuracy"] = _fit(_model(keras, ["accuracy"]))
    timings = in_turn(0.0, options["repeats"] * 3, *runs.values())
    base = timings[0].median_s
    rows: list[Row] = [
        {"training": name, "us/step": timing.median_s / (ROWS / SIZE) * 1e6, "of the loop": timing.median_s / base}
        for name, timing in zip(runs, timings, strict=True)
    ]
    place = (
        "a browser" if sys.platform == "emscripten" else f"{os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}"
    )
    return {"rows": rows, "notes": [f"20-32-2 perceptron, batches of {SIZE}, Adam; medians of turns; {place}"]}


def _model(library: Any, metrics: list[str]) -> Any:
    layers = library.layers
    model = library.Sequential([library.Input(shape=(20,)), layers.Dense(32, activation="relu"), layers.Dense(2)])
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=metrics or None)
    return model


def _fit(model: Any, verbose: int = 0) -> Callable[[], None]:
    def run() -> None:
        with redirect_stdout(Terminal()):
            model.fit(X, Y, batch_size=SIZE, verbose=verbose)

    return run


def _by_hand(model: Any) -> Callable[[], None]:
    params = list(model.parameters())
    model.optimizer.build(params)

    def run() -> None:
        order = RNG.permutation(ROWS)
        for start in range(0, ROWS, SIZE):
            rows = order[start : start + SIZE]
            for param in params:
                param.grad = None
            F.cross_entropy(model(tl.tensor(X[rows]), training=True), tl.tensor(Y[rows])).backward()
            model.optimizer.step()

    return run
