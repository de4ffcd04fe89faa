"""The Python behind app.js, which trains a network by calling the methods of `Demo`."""

from __future__ import annotations

import importlib
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import datasets
import digits
import inspection
import numpy as np
import numpy.typing as npt
from datasets import Dataset
from files import check_head, check_weights, read_pair
from script import write_script
from settings import Settings, make_network, make_optimizer
from training import Trainer

import tallow as tl
from tallow import kernels
from tallow.errors import ArgumentError, CheckpointError, TallowError
from tallow.io import safetensors
from tallow.io.source import Opened

# The page's names for files of weights; files of other names belong to a dataset.
WEIGHTS, TEXT_WEIGHTS = "weights", "text weights"
# Further images are ignored: a tab has to hold the images as float32.
MAX_IMAGES = 20_000
# The part of the plane that is shown, from -VIEW to VIEW on both axes, and the number of predictions along each axis.
VIEW = 1.4
GRID = 90
SAMPLES = 24
# Evaluation takes at most this share of the training time.
EVALUATION_SHARE = 0.25


class NotANumber(TallowError, ArithmeticError):
    """The loss is not finite."""


class Demo:
    """One dataset, one network and one trainer. The page calls `configure` first."""

    def __init__(self) -> None:
        self._settings: Settings
        self._dataset: Dataset
        self._trainer: Trainer
        self._data_key: object = None  # the settings that the dataset and the network were built from
        self._network_key: object = None
        self._points: list[tuple[float, float, int]] = []
        self._files: tuple[tl.Tensor, tl.Tensor, tuple[str, str]] | None = None
        self._evaluated_s = 0.0  # the duration of the last evaluation
        self._trained_s = 0.0  # the training time since then
        self._words: Any = None  # of the text tab

    # ---------------------------------------------------------------------------------------------------- the text tab

    def open_words(self, sources: dict[str, str]) -> None:
        """Import the modules of the text tab: their texts by their files' names. Pages start without them."""
        for name, source in sources.items():
            Path(__file__).with_name(name).write_text(source, encoding="utf-8")
        importlib.invalidate_caches()
        self._words = importlib.import_module("words").Words()

    def words(self, method: str, keywords: dict[str, Any]) -> Any:
        """Call a public method of the text tab."""
        if method.startswith("_"):
            raise AttributeError(f"{method} is private")
        return getattr(self._words, method)(**keywords)

    # ---------------------------------------------------------------------------------------- settings and the dataset

    def configure(self, **form: Any) -> dict[str, Any]:
        """Apply the settings. The network is only replaced if its data or its layers have changed."""
        settings = Settings(**form)
        dataset = self._dataset if settings.data_key() == self._data_key else self._make(settings)
        new = settings.network_key() != self._network_key
        if new:
            self._trainer = _new_trainer(settings, dataset)
        else:
            optimizer = make_optimizer(settings, self._trainer.network, self._trainer.optimizer)
            self._trainer.optimizer, self._trainer.batch_size = optimizer, settings.batch_size
            self._trainer.l1 = settings.l1
        self._settings, self._dataset = settings, dataset
        self._data_key, self._network_key = settings.data_key(), settings.network_key()
        return self._description(new)

    def reset(self) -> dict[str, Any]:
        """Restore the network to its state before the first step."""
        self._trainer = _new_trainer(self._settings, self._dataset)
        return self._description(new=True)

    def add_point(self, x: float, y: float, label: int) -> dict[str, Any]:
        """Add a point of the user. The network is only replaced if it has no output for the point's class."""
        datasets.check_point(x, y, label)
        self._points.append((round(x, 3), round(y, 3), label))
        return self._use_points()

    def clear_points(self) -> dict[str, Any]:
        """Remove the user's points."""
        self._points.clear()
        return self._use_points()

    def _use_points(self) -> dict[str, Any]:
        before, self._dataset = self._dataset, datasets.own_points(self._points)
        new = self._dataset.classes != before.classes
        if new:
            self._trainer = _new_trainer(self._settings, self._dataset)
        else:
            self._trainer.use(self._dataset.data)
        return self._description(new)

    def _make(self, settings: Settings) -> Dataset:
        if settings.dataset == "own":
            return datasets.own_points(self._points)
        if settings.dataset == "digits":
            return datasets.drawn_digits(settings.seed)
        if settings.dataset == "files":
            if self._files is None:
                raise ArgumentError("there are no files yet", hint="choose a file of images and its file of labels")
            return datasets.image_files(*self._files, MAX_IMAGES, settings.seed)
        return datasets.shape(settings.dataset, settings.noise, settings.seed)

    def _description(self, new: bool) -> dict[str, Any]:
        """Return what the page shows about the data and the network; `new` is whether the network was replaced."""
        data, network = self._dataset.data, self._trainer.network
        description = {
            "new": new,
            "images": self._dataset.has_images,
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            "examples": [len(data.train), len(data.test)],
            "steps": self._trainer.steps,
            "evaluation": self._evaluate(),
            "code": write_script(self._settings, self._dataset, network),
            "kernels": kernels.info().library,
        }
        if self._dataset.has_images:
            samples = data.test[:SAMPLES]
            return description | {"pixels": _bytes(data.x[samples]), "labels": _bytes(data.y[samples], 1)}
        trained = tl.zeros(len(data.x)).index_fill(0, data.train, 1)
        plane = {"view": VIEW, "points": data.x.numpy().ravel(), "trained": _bytes(trained, 1)}
        return description | plane | {"labels": _bytes(data.y, 1)}

    # ------------------------------------------------------------------------------------------------------- training

    def advance(self, seconds: float, steps: int | None = None) -> dict[str, Any]:
        """Train for this long, at least one batch and at most `steps`."""
        trainer = self._trainer
        if len(trainer.data.y.unique()) < 2:
            raise ArgumentError("all points have the same class", hint="add points of two classes first")
        started = time.perf_counter()
        losses: list[float] = []
        duration = 0.0
        most = math.inf if steps is None else steps
        while not trainer.diverged and (not losses or (duration < seconds and len(losses) < most)):
            losses.append(trainer.step())
            duration = time.perf_counter() - started
        if trainer.diverged:
            raise NotANumber(
                "the loss is no longer a number", hint="lower the learning rate, then press Reset and Train"
            )
        self._trained_s += duration
        report = {"losses": np.array(losses, np.float32), "steps": trainer.steps, "epochs": trainer.epochs}
        report |= {"seconds": duration, "evaluation": None}
        if seconds == 0 or self._trained_s * EVALUATION_SHARE > self._evaluated_s:
            report["evaluation"] = self._evaluate()
        return report

    def evaluate(self) -> dict[str, float] | None:
        """Evaluate the network, if it has been trained since the last evaluation."""
        return self._evaluate() if self._trained_s else None

    def _evaluate(self) -> dict[str, float] | None:
        if not len(self._trainer.data.test):
            return None
        started = time.perf_counter()
        evaluation = self._trainer.evaluate()
        self._evaluated_s, self._trained_s = time.perf_counter() - started, 0.0
        return evaluation

    # ----------------------------------------------------------------------------------------------------- predictions

    def view(self) -> dict[str, Any]:
        """Return the predicted classes of the plane or of the samples, with the confidence of each, 0 to 255.

        With the plane comes the diagram of the network, with the samples come its mistakes.
        """
        if self._dataset.has_images:
            return inspection.mistakes(self._trainer, SAMPLES)
        confidence, classes = self._trainer.logits(inspection.grid(VIEW, GRID)).softmax(1).max(1)
        field = {"classes": _bytes(classes, 1), "confidence": _bytes(confidence)}
        return {**field, "diagram": inspection.diagram(self._trainer.network, VIEW)}

    def classify(self, strokes: list[list[list[float]]]) -> dict[str, Any]:
        """Classify a drawing. Each stroke is a list of points [x, y], in any unit, with y downwards."""
        if not self._dataset.has_images:
            raise ArgumentError("this network classifies points, not drawings", hint="choose digits")
        lines = [[stroke[0], *stroke] for stroke in strokes if stroke]  # a dot is a segment from a point to itself
        if not lines:
            raise ArgumentError("the drawing is empty", hint="draw a digit first")
        image = digits.ink(digits.segments(lines)[None], tl.tensor([2.5]))
        return {"pixels": _bytes(image), "probabilities": self._trainer.logits(image).softmax(1).numpy().ravel()}

    # ---------------------------------------------------------------------------------------------------------- files

    def export(self) -> bytes:
        """Return the weights as a safetensors file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "weights.safetensors")
            safetensors.save(self._trainer.network.state_dict(), path)
            return path.read_bytes()

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name in (WEIGHTS, TEXT_WEIGHTS):
            check_weights(head)
        else:
            check_head(name, head, size)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load weights into the network; or images and labels, which the next `configure` uses."""
        if TEXT_WEIGHTS in files:
            return self._words.load(files[TEXT_WEIGHTS])
        if WEIGHTS in files:
            self._import(files[WEIGHTS])
            return {}
        self._files = read_pair(files)
        self._data_key = self._network_key = None  # the dataset may be that of earlier files
        return {"names": self._files[2], "examples": len(self._files[1])}

    def _import(self, file: npt.NDArray[np.uint8]) -> None:
        tensors = safetensors.load(Opened(file, "the file"))
        not_finite = [key for key, tensor in tensors.items() if not tensor.isfinite().all()]
        if not_finite:
            raise CheckpointError(
                f"weights: {not_finite[0]} has NaN or infinity", hint="save weights before they diverge"
            )
        trainer = _new_trainer(self._settings, self._dataset)
        trainer.network.load_state_dict(tensors)
        self._trainer = trainer


def _new_trainer(settings: Settings, dataset: Dataset) -> Trainer:
    tl.manual_seed(settings.seed)
    network = make_network(settings, dataset.has_images, dataset.classes)
    return Trainer(dataset.data, network, make_optimizer(settings, network), settings.batch_size, settings.l1)


def _bytes(values: tl.Tensor, scale: int = 255) -> npt.NDArray[np.uint8]:
    """Convert values in 0..1 to bytes in 0..255; with `scale=1`, integers stay unchanged."""
    return (values * scale).nan_to_num(0).round().to(tl.uint8).numpy().ravel()
