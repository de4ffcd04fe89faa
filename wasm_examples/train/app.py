"""A network trains in the tab: the Python behind app.js, which calls the methods of `Demo`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import datasets
import digits
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

# What the page calls a file of weights, whatever its own name is; all others are of a dataset.
WEIGHTS = "weights"
# What is used of files with more: a tab holds it as float32 beside the rest.
MAX_IMAGES = 20_000
# The part of the plane that is shown, from -VIEW to VIEW either way, and how finely it is asked what the network says.
VIEW = 1.4
GRID = 72
SAMPLES = 24
# Looking at how training goes takes at most this share of the time.
EVALUATING = 0.25


class NotANumber(TallowError, ArithmeticError):
    """Training has gone where no number is."""


class Demo:
    """One dataset, one network, one trainer; `configure` comes before everything else."""

    def __init__(self) -> None:
        self._settings: Settings
        self._dataset: Dataset
        self._trainer: Trainer
        self._data_key: object = None  # what the dataset and the network were made of
        self._network_key: object = None
        self._points: list[tuple[float, float, int]] = []
        self._files: tuple[tl.Tensor, tl.Tensor, tuple[str, str]] | None = None
        self._evaluated_s = 0.0  # what the last evaluation took
        self._trained_s = 0.0  # since then

    # ------------------------------------------------------------------------------------------------ what is trained

    def configure(self, **form: Any) -> dict[str, Any]:
        """Take the settings. A network that they still describe goes on, whatever its optimizer is now."""
        settings = Settings(**form)
        dataset = self._dataset if settings.data_key() == self._data_key else self._make(settings)
        new = settings.network_key() != self._network_key
        if new:
            self._trainer = _new_trainer(settings, dataset)
        else:
            optimizer = make_optimizer(settings, self._trainer.network, self._trainer.optimizer)
            self._trainer.optimizer, self._trainer.batch_size = optimizer, settings.batch_size
        self._settings, self._dataset = settings, dataset
        self._data_key, self._network_key = settings.data_key(), settings.network_key()
        return self._description(new)

    def reset(self) -> dict[str, Any]:
        """The network as it was before its first step."""
        self._trainer = _new_trainer(self._settings, self._dataset)
        return self._description(new=True)

    def add_point(self, x: float, y: float, label: int) -> dict[str, Any]:
        """Another point of the reader's. The network goes on with it, unless it has no output for that class."""
        datasets.check_point(x, y, label)
        self._points.append((round(x, 3), round(y, 3), label))
        return self._take_points()

    def clear_points(self) -> dict[str, Any]:
        self._points.clear()
        return self._take_points()

    def _take_points(self) -> dict[str, Any]:
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
                raise ArgumentError("there are no files yet", mend="choose a file of images and its file of labels")
            return datasets.image_files(*self._files, MAX_IMAGES, settings.seed)
        return datasets.shape(settings.dataset, settings.noise, settings.seed)

    def _description(self, new: bool) -> dict[str, Any]:
        """What the page shows beside the training itself; `new` says whether the network is."""
        data, network = self._dataset.data, self._trainer.network
        description = {
            "new": new,
            "images": self._dataset.has_images,
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            "examples": [len(data.train), len(data.held)],
            "steps": self._trainer.steps,
            "evaluation": self._evaluate(),
            "code": write_script(self._settings, self._dataset, network),
            "kernels": kernels.info().library,
        }
        if self._dataset.has_images:
            shown = data.held[:SAMPLES]
            return description | {"pixels": _bytes(data.x[shown]), "labels": _bytes(data.y[shown], 1)}
        trained = tl.zeros(len(data.x)).index_fill(0, data.train, 1)
        plane = {"view": VIEW, "points": data.x.numpy().ravel(), "trained": _bytes(trained, 1)}
        return description | plane | {"labels": _bytes(data.y, 1)}

    # ------------------------------------------------------------------------------------------------------- training

    def advance(self, seconds: float) -> dict[str, Any]:
        """Train for that long, one batch at least."""
        trainer = self._trainer
        if len(trainer.data.y.unique()) < 2:
            raise ArgumentError("there is nothing to tell apart", mend="draw points of two classes first")
        started = time.perf_counter()
        losses: list[float] = []
        spent = 0.0
        while not trainer.diverged and (not losses or spent < seconds):
            losses.append(trainer.step())
            spent = time.perf_counter() - started
        if trainer.diverged:
            raise NotANumber(
                "the loss is no longer a number", mend="lower the learning rate, then press Reset and Train"
            )
        self._trained_s += spent
        report = {"losses": np.array(losses, np.float32), "steps": trainer.steps, "epochs": trainer.epochs}
        report |= {"seconds": spent, "evaluation": None}
        if seconds == 0 or self._trained_s * EVALUATING > self._evaluated_s:
            report["evaluation"] = self._evaluate()
        return report

    def _evaluate(self) -> dict[str, float] | None:
        if not len(self._trainer.data.held):
            return None
        started = time.perf_counter()
        evaluation = self._trainer.evaluate()
        self._evaluated_s, self._trained_s = time.perf_counter() - started, 0.0
        return evaluation

    # ------------------------------------------------------------------------------------------------ what it says now

    def view(self) -> dict[str, Any]:
        """The classes that the network sees, and how sure it is of each, 0 to 255: of the plane or of the samples."""
        if self._dataset.has_images:
            x = self._dataset.data.x[self._dataset.data.held[:SAMPLES]]
        else:
            across = tl.linspace(-VIEW, VIEW, GRID)
            rows, columns = tl.meshgrid(-across, across, indexing="ij")  # the first row is the highest
            x = tl.stack([columns, rows], dim=-1).reshape(-1, 2)
        sure, classes = self._trainer.logits(x).softmax(1).max(1)
        return {"classes": _bytes(classes, 1), "sure": _bytes(sure)}

    def classify(self, strokes: list[list[list[float]]]) -> dict[str, Any]:
        """What the network takes a drawing for. Strokes are corners [x, y], in any unit, y downwards."""
        if not self._dataset.has_images:
            raise ArgumentError("this network sees points, not drawings", mend="choose digits")
        pieces = [[stroke[0], *stroke] for stroke in strokes if stroke]  # a dot too is a piece, from itself to itself
        if not pieces:
            raise ArgumentError("the drawing is empty", mend="draw a digit first")
        image = digits.ink(digits.segments(pieces)[None], tl.tensor([2.5]))
        return {"pixels": _bytes(image), "probabilities": self._trainer.logits(image).softmax(1).numpy().ravel()}

    # ---------------------------------------------------------------------------------------------------------- files

    def export(self) -> bytes:
        """The weights as a safetensors file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "weights.safetensors")
            safetensors.save(self._trainer.network.state_dict(), path)
            return path.read_bytes()

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name == WEIGHTS:
            check_weights(head)
        else:
            check_head(name, head, size)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Weights for the network that there is, or images and labels, which `configure` will find."""
        if WEIGHTS in files:
            self._import(files[WEIGHTS])
            return {}
        self._files = read_pair(files)
        self._data_key = self._network_key = None  # they may be of the files before
        return {"names": self._files[2], "examples": len(self._files[1])}

    def _import(self, file: npt.NDArray[np.uint8]) -> None:
        tensors = safetensors.load(file)
        odd = [key for key, tensor in tensors.items() if not tensor.isfinite().all()]
        if odd:
            raise CheckpointError(f"weights: {odd[0]} holds what is no number", mend="save weights before they diverge")
        trainer = _new_trainer(self._settings, self._dataset)
        trainer.network.load_state_dict(tensors)
        self._trainer = trainer


def _new_trainer(settings: Settings, dataset: Dataset) -> Trainer:
    tl.manual_seed(settings.seed)
    network = make_network(settings, dataset.has_images, dataset.classes)
    return Trainer(dataset.data, network, make_optimizer(settings, network), settings.batch_size)


def _bytes(values: tl.Tensor, scale: int = 255) -> npt.NDArray[np.uint8]:
    """Numbers in 0..1 as 0..255, or whole ones as they are."""
    return (values * scale).nan_to_num(0).round().to(tl.uint8).numpy().ravel()
