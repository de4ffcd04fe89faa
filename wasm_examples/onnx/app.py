"""The Python behind app.js: an ONNX model, its graph, and runs of it, operator by operator.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from drawn import Drawing, drawing_of, file_drawing
from shown import labels_of, shown_outputs, shown_value

import tallow as tl
from tallow import kernels
from tallow.errors import ArgumentError, CheckpointError, TallowError, UnsupportedError
from tallow.fx.interpreter import Interpreter
from tallow.io.source import Opened
from tallow.onnx.feeds import filled, from_array, from_picture, from_sound, kinds_of, picture_dims
from tallow.onnx.loading import OnnxModule, load
from tallow.onnx.protobuf import read_model
from tallow.onnx.signature import ValueInfo, bound
from tallow.onnx.summary import OnnxContents, contents_of

MODEL = "model.onnx"
CONFIG, PREPROCESSOR = "config.json", "preprocessor_config.json"
KEPT_BYTES = 256 << 20  # of the values of operators, for a look at them after the run
MOST_NODES = 20_000  # that are drawn
OTHERS = {
    b"PK\x03\x04": "a zip archive, such as a PyTorch file",
    b"GGUF": "a GGUF file",
    b"version https://git-lfs": "a pointer of Git LFS, in place of the file",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"\x89HDF": "an HDF5 file, such as Keras writes",
}


class NothingLoaded(TallowError, RuntimeError):
    """A run was asked for before a model was loaded."""


class Demo:
    """A model, the values of its inputs, and its last run."""

    def __init__(self) -> None:
        self._model: OnnxModule | None = None
        self._problem = ""
        self._drawing = Drawing([], {})
        self._labels: list[str] = []
        self._scale = "unit"
        self._values: dict[str, Any] = {}
        self._run: Run | None = None

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name == MODEL:
            start = head.lstrip().lower()
            for mark, kind in OTHERS.items():
                if start.startswith(mark.lower()):
                    raise CheckpointError(f"this is {kind}; the page runs ONNX files", hint="choose a file named .onnx")
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a file, and the files of its external data. A file with operators that are missing is drawn only."""
        proto = read_model(Opened(files[MODEL], "the file"))
        summary = contents_of(proto)
        problem, model = "", None
        try:
            model = _loaded(files)
            drawing = drawing_of(model)
        except UnsupportedError as error:
            problem, drawing = str(error), file_drawing(proto)
        self._model, self._problem, self._drawing = model, problem, drawing
        settings = {name: _entries(data) for name, data in files.items() if name.endswith(".json")}
        self._labels = labels_of(summary.metadata) or labels_of(settings.get(CONFIG, {}))
        self._scale = _scale(settings.get(PREPROCESSOR, {}))
        self._values, self._run = {}, None
        return self._description(summary)

    def _description(self, summary: OnnxContents) -> dict[str, Any]:
        kernel = kernels.info()
        nodes = self._drawing.nodes
        return {
            "nodes": [node.entry() for node in nodes[:MOST_NODES]],
            "cut": len(nodes) > MOST_NODES,
            "inputs": [_input(info, self._scale) for info in self._model.inputs()] if self._model is not None else [],
            "operators": summary.operators,
            "opset": ", ".join(f"{name} {version}" for name, version in summary.opsets.items()),
            "producer": str(summary.metadata.get("producer", "")),
            "parameters": sum(entry.count for entry in summary.tensors),
            "weightBytes": sum(entry.bytes for entry in summary.tensors),
            "quantisation": summary.quantisation,
            "problem": self._problem,
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    # ---------------------------------------------------------------------------------------------- values of inputs

    def give_picture(
        self, name: str, pixels: npt.NDArray[np.uint8], width: int, height: int, scale: Any, order: Any
    ) -> None:
        """Set an input to a picture, whose pixels are RGBA."""
        rgb = np.asarray(pixels).reshape(height, width, 4)[..., :3]
        self._values[name] = from_picture(rgb, self._info(name), scale=scale, order=order)

    def give_sound(self, name: str, samples: npt.NDArray[np.int16]) -> None:
        """Set an input to a sound of 16 kHz."""
        self._values[name] = from_sound(np.asarray(samples).astype(np.float32) / np.float32(32768), self._info(name))

    def give_text(self, name: str, text: str) -> None:
        """Set an input of strings to one text."""
        rank = len(self._info(name).shape or ())
        self._values[name] = np.array(text, dtype=object).reshape((1,) * rank)

    def give_numbers(self, name: str, fill: str, dims: list[int], text: str) -> None:
        """Set an input to numbers that were written, or to some that `fill` names."""
        info = self._info(name)
        if fill != "list":
            self._values[name] = filled(info, dims, fill)
            return
        try:
            numbers = np.array([float(word) for word in text.replace(",", " ").split()])
        except ValueError as error:
            raise ArgumentError(
                f"the input {name}: {error}", hint="write numbers, with spaces or commas between them"
            ) from None
        if numbers.size != np.prod(dims, dtype=np.float64):
            raise ArgumentError(
                f"the input {name} has {numbers.size} numbers; its dims are {' x '.join(map(str, dims))}",
                hint="write as many, or change the dims",
            )
        self._values[name] = from_array(numbers.reshape(dims), info)

    def _info(self, name: str) -> ValueInfo:
        return next(info for info in self._loaded().inputs() if info.name == name)

    # ------------------------------------------------------------------------------------------------------ a run

    def generate(self) -> Generator[tuple[str, dict[str, Any]]]:
        """Run the model, operator by operator."""
        model = self._loaded()
        self._run = None
        values = bound(model.inputs(), (), self._values, lambda: None)
        run = Run(model, self._drawing)
        yield from run.steps(values)
        self._run = run

    def results(self, width: int, height: int) -> dict[str, Any]:
        """Return the outputs of the last run, and what each operator took and gave.

        Args:  width, height: of the picture that went in, in pixels
        """
        run, model = self._finished(), self._loaded()
        outputs = dict(zip(model.output_names, run.outputs, strict=True))
        return {
            "outputs": shown_outputs(outputs, self._labels, (width, height)),
            "seconds": run.seconds,
            "details": run.details,
        }

    def node(self, index: int) -> dict[str, Any]:
        """Return what the page shows of an operator, and the value that it gave in the last run."""
        node = self._drawing.nodes[index]
        lines = node.lines()
        if self._run is None:
            return {"lines": lines, "view": None}
        if self._run.seconds[index]:
            lines.append(["time", f"{1000 * self._run.seconds[index]:.2f} ms"])
        if index not in self._run.kept:
            return {"lines": [*lines, ["value", "not kept: the values of all operators exceed 256 MB"]], "view": None}
        return {"lines": lines, "view": shown_value(self._run.kept[index])}

    def _loaded(self) -> OnnxModule:
        if self._model is None:
            raise NothingLoaded(self._problem or "there is no model yet", hint="choose another file")
        return self._model

    def _finished(self) -> Run:
        if self._run is None:
            raise NothingLoaded("there is no run yet", hint="press Run first")
        return self._run


class Run(Interpreter):
    """A run of a model, with the time that each drawn operator took and the value that it gave.

    Attributes:
        seconds, details: of each drawn operator: its time, and dims with dtype of its value.
        kept: values by the index of the operator, as many as fit into KEPT_BYTES.
        outputs: of the model.
    """

    def __init__(self, model: OnnxModule, drawing: Drawing) -> None:
        super().__init__(model)
        self._drawing = drawing
        self._given: dict[str, Any] = {}
        self._bytes = 0
        self.seconds = [0.0] * len(drawing.nodes)
        self.details = [""] * len(drawing.nodes)
        self.kept: dict[int, Any] = {}
        self.outputs: tuple[Any, ...] = ()

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return the value of an input."""
        return self._given[target]

    def steps(self, values: tuple[Any, ...]) -> Generator[tuple[str, dict[str, Any]]]:
        """Run node by node; yield how far it is."""
        nodes = list(self.graph.nodes)
        names = [str(node.target) for node in nodes if node.op == "placeholder"]
        self._given = dict(zip(names, values, strict=True))
        for done, node in enumerate(nodes):
            index = self._drawing.places.get(node)
            started = time.perf_counter()
            with tl.no_grad():
                self.env[node] = value = self.run_node(node)
            if index is not None:
                self.seconds[index] += time.perf_counter() - started if node.op.startswith("call") else 0.0
                self._note(index, value)
            for used in self.user_to_last_uses.get(node, []):
                self.env.pop(used, None)
            if node.op == "output":
                self.outputs = value if isinstance(value, tuple) else (value,)
            label = "" if index is None else self._drawing.nodes[index].label
            yield "", {"done": done + 1, "total": len(nodes), "label": label}

    def _note(self, index: int, value: Any) -> None:
        if not isinstance(value, tl.Tensor):
            self.details[index] = type(value).__name__
            return
        dims = " × ".join(map(str, value.shape)) or "scalar"
        self.details[index] = f"{dims} {str(value.dtype).rpartition('.')[2]}"
        size = value.numel() * value.dtype.itemsize
        if self._bytes + size <= KEPT_BYTES:
            self._bytes += size
            self.kept[index] = value


def _loaded(files: dict[str, npt.NDArray[np.uint8]]) -> OnnxModule:
    """Load the model; the files of its external data, if any, are written to a folder, where it looks for them."""
    if all(name == MODEL or name.endswith(".json") for name in files):
        return load(Opened(files[MODEL], "the file"))
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / Path(name).name).write_bytes(data.tobytes())
        return load(Path(folder) / MODEL)


def _entries(data: npt.NDArray[np.uint8]) -> dict[str, Any]:
    """Return the entries of a JSON file of the Hub; none if it is damaged, since the model runs without them."""
    try:
        found = json.loads(data.tobytes())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _scale(settings: dict[str, Any]) -> str:
    """Return the range of pictures by an image processor's settings."""
    if not settings.get("do_normalize", bool(settings)):
        return "unit"
    mean = settings.get("image_mean")
    return "signed" if mean in (0.5, [0.5, 0.5, 0.5]) else "imagenet"


def _input(info: ValueInfo, scale: str) -> dict[str, Any]:
    """Return an input as inputs.js describes it."""
    dims = picture_dims(info)
    return {
        "name": info.name,
        "dtype": info.kind if info.dtype is None else str(info.dtype).rpartition(".")[2],
        "shape": list(info.shape or ()),
        "kinds": kinds_of(info),
        "scale": "bytes" if info.dtype == tl.uint8 else scale,
        "size": {name: dims and getattr(dims, name) for name in ("height", "width", "channels")},
    }
