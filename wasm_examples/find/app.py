"""The Python behind app.js: a detector, and what it finds in frames.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import kernels
from tallow.errors import TallowError
from tallow.models.vision.scene_finder import SceneFinder
from tallow.models.vision.scenes import SceneDetector

CONFIG, WEIGHTS = "config.json", "model.safetensors"
LOWEST = 0.15  # score of what the page may show


class NothingLoaded(TallowError, RuntimeError):
    """A frame came before a model was loaded."""


class Demo:
    """A model that finds things."""

    def __init__(self) -> None:
        self._finder: SceneFinder | None = None

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        return None  # the files are the site's

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load the detector of the site."""
        self._finder = SceneFinder(SceneDetector.from_files(files[CONFIG], files[WEIGHTS]))
        kernel = kernels.info()
        return {
            "parameters": sum(it.numel() for it in self._finder.model.parameters()),
            "weightBytes": len(files[WEIGHTS]),
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    def find(self, pixels: npt.NDArray[np.uint8], width: int, height: int) -> dict[str, Any]:
        """Return what is in a frame, best first, and the number of the thing at each pixel, 0 for none.

        Args:  pixels: RGBA
        """
        if self._finder is None:
            raise NothingLoaded("there is no model yet")
        started = time.perf_counter()
        picture = np.ascontiguousarray(np.asarray(pixels).reshape(height, width, 4)[..., :3])
        (found,) = self._finder.find([picture], LOWEST)
        masks = np.asarray(found.masks)
        numbers = np.zeros((height, width), np.uint8)
        for i in reversed(range(len(found.scores))):
            numbers[masks[i]] = i + 1
        things = [
            {"label": self._finder.labels[kind], "kind": int(kind), "score": float(score), "box": box.tolist()}
            for kind, score, box in zip(found.labels, found.scores, found.boxes, strict=True)
        ]
        return {"things": things, "map": numbers.reshape(-1), "seconds": time.perf_counter() - started}
