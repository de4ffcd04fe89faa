"""The Python behind app.js: vectors of pictures and words, search, and the likeness of a picture to labels.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow import kernels
from tallow.errors import TallowError
from tallow.io.model_folder import check_head, memory_folder
from tallow.models.built_in import emoji
from tallow.models.vision.picture_words import PictureWords

SHARPNESS = 20.0  # factor of the cosines of the built-in encoder, as in training
MOST = 60  # results

Pixels = npt.NDArray[np.uint8]
Vectors = npt.NDArray[np.float32]


class NothingLoaded(TallowError, RuntimeError):
    """A picture or a word came before a model was loaded."""


class Encoder(Protocol):
    """A model, as far as the page needs it."""

    side: int  # of a picture, in pixels
    cuts: bool  # the middle of a picture is its input, in place of all of it on white
    sharpness: float  # factor of the cosines in a softmax over labels
    parameters: int

    def picture(self, pixels: Pixels) -> Vectors: ...

    def texts(self, texts: list[str]) -> Vectors: ...


class BuiltIn:
    """The encoder of emoji."""

    cuts = False

    def __init__(self, model: PictureWords) -> None:
        self._model = model
        self.side, self.sharpness = model.config.side, SHARPNESS
        self.parameters = sum(it.numel() for it in model.parameters())

    def picture(self, pixels: Pixels) -> Vectors:
        return self._model.encode([pixels])[0]

    def texts(self, texts: list[str]) -> Vectors:
        return self._model.encode_texts(texts)


class Clip:
    """A CLIP of the Hub. The page scales pictures, so that Pillow is not needed."""

    cuts = True

    def __init__(self, files: dict[str, npt.NDArray[np.uint8]]) -> None:
        # Imported for the models that need them: the built-in one starts without.
        from tallow.models import loading
        from tallow.models.vision.clip import CLIPModel
        from tallow.models.vision.image_processor import ImageProcessor
        from tallow.models.vision.images import ImageEncoder
        from tallow.text.tokenizer import Tokenizer

        with memory_folder(files) as load:
            processor = ImageProcessor.from_pretrained(Path())
            model = loading.read(CLIPModel, Path(), tl.float32, None, None, False, load(Path()))
            self._encoder = ImageEncoder(processor, model, Tokenizer.from_pretrained(Path()))
        self.side = model.config.vision_config.image_size
        self.sharpness = float(model.logit_scale.exp().item())
        self.parameters = model.num_parameters()
        self._mean, self._deviation = (
            np.array(it, np.float32).reshape(3, 1, 1) for it in (processor.image_mean, processor.image_std)
        )

    def picture(self, pixels: Pixels) -> Vectors:
        scaled = (pixels.transpose(2, 0, 1).astype(np.float32) / 255 - self._mean) / self._deviation
        with tl.no_grad():
            vector = self._encoder.model.get_image_features(tl.from_numpy(scaled[None])).numpy()[0]
        return vector / np.linalg.norm(vector)

    def texts(self, texts: list[str]) -> Vectors:
        return self._encoder.encode_texts(texts, normalize=True)


class Demo:
    """A model, the emoji that it knows, and the vectors of the user's pictures."""

    def __init__(self) -> None:
        self._encoder: Encoder | None = None
        self._names: list[str] = []
        self._index = np.zeros((0, 1), np.float32)
        self._own: dict[int, Vectors] = {}

    def list_files(self, *, config: str | None = None) -> dict[str, Any]:
        """Return the names of a CLIP's files.  Raises: CheckpointError for another model; TallowError without a file"""
        from tallow.models.vision.clip import CLIPConfig
        from tallow.text.tokenizer_folder import FILES, SETTINGS

        if config is not None:
            with memory_folder({"config.json": config.encode()}):
                CLIPConfig.from_json(Path("config.json"))
        return {
            "required": ["config.json", "preprocessor_config.json"],
            "optional": [*SETTINGS],
            "weights": [""],
            "tokenizers": [FILES],
        }

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        check_head(name, head, size)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a CLIP; without files the packaged encoder, with its index of emoji."""
        encoder: Encoder = Clip(files) if files else BuiltIn(emoji.load())
        self._encoder = encoder
        self._own.clear()
        names, index = ((), np.zeros((0, 1), np.float32)) if files else emoji.read_index()
        self._names, self._index = list(names), index
        return {
            "side": encoder.side,
            "cuts": encoder.cuts,
            "parameters": encoder.parameters,
            "emoji": len(self._names),
            "knows": "" if files else emoji.KNOWS,
            "kernels": str(kernels.info()).partition(",")[0],
        }

    def keep(self, pixels: npt.NDArray[np.uint8], number: int) -> dict[str, float]:
        """Keep the vector of a picture of the user.  Args: pixels: RGBA, of the model's side"""
        started = time.perf_counter()
        self._own[number] = self._vector(pixels)
        return {"seconds": time.perf_counter() - started}

    def forget(self, *, number: int) -> None:
        """Forget a picture."""
        self._own.pop(number, None)

    def search(self, *, query: str) -> dict[str, Any]:
        """Return the pictures that are nearest to a query: emoji, and numbers of the user's pictures."""
        started = time.perf_counter()
        vector = self._loaded().texts([query])[0]
        places: list[str | int] = [*self._names, *self._own]
        rows = [self._index @ vector] if self._names else []
        if self._own:
            rows.append(np.stack([*self._own.values()]) @ vector)
        scores = np.concatenate(rows) if rows else np.zeros(0, np.float32)
        order = np.argsort(-scores, kind="stable")[:MOST] if vector.any() else []
        return {
            "found": [{"picture": places[i], "score": float(scores[i])} for i in order],
            "known": bool(vector.any()),
            "seconds": time.perf_counter() - started,
        }

    def label(self, pixels: npt.NDArray[np.uint8], labels: list[str]) -> dict[str, Any]:
        """Return the probability of each label of a picture.  Args: pixels: RGBA, of the model's side"""
        started = time.perf_counter()
        encoder = self._loaded()
        logits = encoder.sharpness * (encoder.texts(labels) @ self._vector(pixels))
        shares = np.exp(logits - logits.max())
        return {"shares": (shares / shares.sum()).tolist(), "seconds": time.perf_counter() - started}

    def _vector(self, pixels: npt.NDArray[np.uint8]) -> Vectors:
        encoder = self._loaded()
        picture = np.asarray(pixels).reshape(encoder.side, encoder.side, 4)[..., :3]
        return encoder.picture(np.ascontiguousarray(picture))

    def _loaded(self) -> Encoder:
        if self._encoder is None:
            raise NothingLoaded("there is no model yet", hint="choose one first")
        return self._encoder
