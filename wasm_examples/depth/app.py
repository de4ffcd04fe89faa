"""The Python behind app.js: how far away each pixel of a frame is, or how much of it is foreground.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow import kernels
from tallow.errors import CheckpointError, TallowError
from tallow.io.model_folder import check_head, memory_folder
from tallow.io.source import Opened
from tallow.models import DepthAnythingForDepthEstimation, ImageProcessor, loading
from tallow.models.auto import model_class

CONFIG, PREPROCESSOR, ONNX = "config.json", "preprocessor_config.json", "model.onnx"
NESTED = "processor_config.json"  # the settings of pictures, as newer files have them
STRIDE = 32  # of the sides of pictures for a model in an ONNX file that leaves them open
PATCH = 14  # the same, of a model of depths
ROUNDED = 0.01  # how far shares may be outside of 0 to 1, as in half precision
HALF = (0.5, 0.5, 0.5)
LEVELS = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "signed": (HALF, HALF),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}

Map = npt.NDArray[np.float32]


class NothingLoaded(TallowError, RuntimeError):
    """A frame came before a model was loaded."""


class Eye(Protocol):
    """A model.

    Attributes:
        kind: "relative", where larger values are nearer; "metric", metres; or "matte", the share of the foreground.
        multiple: of the sides of its pictures.
        size: the height and width of its pictures; None means any.
    """

    kind: str
    multiple: int
    size: tuple[int, int] | None

    def see(self, pixels_YX3: npt.NDArray[np.uint8], levels: str) -> Map:
        """Return a map (Y, X) of a picture."""


class DepthEye:
    """A Depth Anything."""

    size: tuple[int, int] | None = None

    def __init__(self, files: dict[str, npt.NDArray[np.uint8]]) -> None:
        with memory_folder(files) as weights:
            processor = ImageProcessor.from_pretrained(Path())
            kind = DepthAnythingForDepthEstimation
            self._model = loading.read(kind, Path(), tl.float32, None, None, False, weights(Path()))
        self.kind = self._model.config.depth_estimation_type
        self.multiple = self._model.config.patch_size
        self._levels = processor.image_mean, processor.image_std
        self.parameters = self._model.num_parameters()

    def see(self, pixels_YX3: npt.NDArray[np.uint8], levels: str) -> Map:
        """Return the depths of a picture."""
        with tl.no_grad():
            depth: Map = self._model(tl.tensor(scaled(pixels_YX3, *self._levels)))[0].numpy()
        return depth


class OnnxEye:
    """A model in an ONNX file, of depths or of the foreground."""

    def __init__(self, files: dict[str, npt.NDArray[np.uint8]]) -> None:
        # Here, because the start of the page needs none of it.
        from tallow.onnx.feeds import picture_dims
        from tallow.onnx.loading import load

        self._model = load(Opened(files[ONNX], "the file"))
        (info, *others) = self._model.inputs()
        dims = picture_dims(info)
        if others or dims is None or dims.channels_last or dims.channels != 3:
            raise CheckpointError("the model does not take one picture", hint="the page for ONNX models runs it")
        self.size = None if dims.height is None or dims.width is None else (dims.height, dims.width)
        is_depth = any("depth" in name.lower() for name in self._model.output_names)
        self.kind = "relative" if is_depth else "matte"
        self.multiple = PATCH if is_depth else STRIDE
        settings = json.loads(files[PREPROCESSOR].tobytes()) if PREPROCESSOR in files else {}
        own = settings.get("image_mean"), settings.get("image_std")
        self._levels = own if all(isinstance(each, list) and len(each) == 3 for each in own) else None
        self.parameters = sum(each.numel() for each in self._model.state_dict().values())

    def see(self, pixels_YX3: npt.NDArray[np.uint8], levels: str) -> Map:
        """Return the depths or the foreground of a picture."""
        with tl.no_grad():
            result = self._model(tl.tensor(scaled(pixels_YX3, *(self._levels or LEVELS[levels]))))
        first = result[0] if isinstance(result, tuple | list) else result
        found: Map = first.numpy().astype(np.float32)
        found = found.reshape(found.shape[-2:]) if found.ndim >= 2 and found[..., 0, 0].size == 1 else found
        if found.ndim != 2:
            what = " x ".join(map(str, found.shape))
            raise CheckpointError(
                f"the model returns {what} numbers, no map", hint="open it in the page for ONNX models"
            )
        if self.kind != "matte":
            return found
        if found.min() < -ROUNDED or found.max() > 1 + ROUNDED:  # logits
            found = 1 / (1 + np.exp(-np.clip(found, -50, 50)))
        return np.clip(found, 0, 1)


class Demo:
    """A model that tells what is near."""

    def __init__(self) -> None:
        self._eye: DepthEye | OnnxEye | None = None

    def list_files(self, *, config: str | None = None) -> dict[str, Any]:
        """Return the names of a model's files.

        Args:    config: the text of its `config.json`
        Raises:  CheckpointError for a model of another kind, before its weights are read
        """
        if config is not None:
            with memory_folder({CONFIG: config.encode()}):
                kind = model_class(Path())
            if kind is not DepthAnythingForDepthEstimation:
                raise CheckpointError(f"a {kind.__name__} tells no depths", hint="choose a Depth Anything")
        return {"required": [CONFIG], "optional": [PREPROCESSOR, NESTED], "weights": [""]}

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name != ONNX and name.endswith((".json", ".safetensors", ".bin")):
            check_head(name, head, size)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a model of its files."""
        eye = OnnxEye(files) if ONNX in files else DepthEye(files)
        self._eye = eye
        height, width = eye.size or (None, None)
        return {
            "kind": eye.kind,
            "multiple": eye.multiple,
            "height": height,
            "width": width,
            "asksLevels": isinstance(eye, OnnxEye) and eye._levels is None,
            "parameters": eye.parameters,
            "weightBytes": sum(len(data) for name, data in files.items() if not name.endswith(".json")),
            "kernels": str(kernels.info()),
        }

    def see(self, pixels: npt.NDArray[np.uint8], width: int, height: int, levels: str) -> dict[str, Any]:
        """Return how near each pixel of a frame is, from 0, the farthest, to 255, with the size of that map.

        Args:
            pixels: RGBA.
            levels: of the picture, for a model that does not say: a name of LEVELS.
        """
        if self._eye is None:
            raise NothingLoaded("there is no model yet", hint="choose one first")
        started = time.perf_counter()
        picture = np.ascontiguousarray(np.asarray(pixels).reshape(height, width, 4)[..., :3])
        found = self._eye.see(picture, levels)
        if not np.isfinite(found).all():
            raise CheckpointError("the map holds NaN or infinities", hint="the weights may be damaged")
        least, most = float(found.min()), float(found.max())
        rows, columns = found.shape
        return {
            "map": nearness(found, self._eye.kind).reshape(-1),
            "mapWidth": columns,
            "mapHeight": rows,
            "range": [least, most],
            "seconds": time.perf_counter() - started,
        }


def scaled(pixels_YX3: npt.NDArray[np.uint8], mean: Any, std: Any) -> npt.NDArray[np.float32]:
    """Return a picture as the input (1, 3, Y, X) of a model."""
    scaled_YX3 = (pixels_YX3.astype(np.float32) / 255 - np.array(mean, np.float32)) / np.array(std, np.float32)
    return np.ascontiguousarray(scaled_YX3.transpose(2, 0, 1)[None].astype(np.float32))


def nearness(found_YX: Map, kind: str) -> npt.NDArray[np.uint8]:
    """Return levels of 0 to 255, larger for what is nearer."""
    if kind == "matte":
        return np.rint(255 * found_YX).astype(np.uint8)
    least, most = found_YX.min(), found_YX.max()
    share = (found_YX - least) / max(float(most - least), float(np.finfo(np.float32).tiny))
    return np.rint(255 * (1 - share if kind == "metric" else share)).astype(np.uint8)
