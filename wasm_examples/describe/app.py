"""The Python behind app.js: captions of a picture, and answers to questions about it, token by token.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow import kernels
from tallow.errors import CheckpointError, TallowError
from tallow.generation import Sampler
from tallow.io.model_folder import check_head, memory_folder
from tallow.models import loading
from tallow.models.auto import model_class
from tallow.models.vision.blip import BlipForQuestionAnswering, BlipWriter
from tallow.models.vision.image_processor import ImageProcessor
from tallow.models.vision.vit import rectangle
from tallow.text import tokenizer_folder
from tallow.text.tokenizer import Tokenizer

CONFIG = "config.json"
SETTINGS = ("preprocessor_config.json", "processor_config.json", "generation_config.json")


class NothingLoaded(TallowError, RuntimeError):
    """A description was asked for before there was a model and a picture."""


class Demo:
    """A model that writes about pictures, and the picture that it has read."""

    def __init__(self) -> None:
        self._model: BlipWriter | None = None
        self._tokenizer: Any = None
        self._levels: Any = None
        self._pixels: tl.Tensor | None = None

    def list_files(self, *, config: str | None = None) -> dict[str, Any]:
        """Return the names of a model's files.

        Args:    config: the text of its `config.json`
        Raises:  CheckpointError for a model of another kind, before its weights are read
        """
        if config is not None:
            with memory_folder({CONFIG: config.encode()}):
                kind = model_class(Path())
            if not issubclass(kind, BlipWriter):
                raise CheckpointError(f"a {kind.__name__} writes no captions", hint="choose a BLIP")
        optional = [*SETTINGS, *tokenizer_folder.SETTINGS]
        return {"required": [CONFIG], "optional": optional, "weights": [""], "tokenizers": [tokenizer_folder.FILES]}

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        check_head(name, head, size)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a model of its files."""
        with memory_folder(files) as weights:
            kind: Any = model_class(Path())
            processor, tokenizer = ImageProcessor.from_pretrained(Path()), Tokenizer.from_pretrained(Path())
            model = loading.read(kind, Path(), tl.float32, None, None, False, weights(Path()))
            model.tokenizer = tokenizer
            _ = model.generation_config  # while its file is there
        self._model, self._tokenizer, self._pixels = model, tokenizer, None
        self._levels = processor.image_mean, processor.image_std
        height, width = rectangle(model.config.vision_config.image_size)
        return {
            "answers": isinstance(model, BlipForQuestionAnswering),
            "height": height,
            "width": width,
            "parameters": model.num_parameters(),
            "kernels": str(kernels.info()),
        }

    def show(self, pixels: npt.NDArray[np.uint8], width: int, height: int) -> None:
        """Take a picture of the model's size.  Args: pixels: RGBA"""
        if self._levels is None:
            raise NothingLoaded("there is no model yet", hint="choose one first")
        mean, std = (np.array(each, np.float32) for each in self._levels)
        levels = np.asarray(pixels).reshape(height, width, 4)[..., :3].astype(np.float32) / 255
        self._pixels = tl.tensor(np.ascontiguousarray(((levels - mean) / std).transpose(2, 0, 1)[None]))

    def generate(
        self, text: str, max_tokens: int, temperature: float, seed: int
    ) -> Generator[tuple[str, dict[str, Any]]]:
        """Write the caption of the picture, behind its beginning, or the answer to a question.

        Args:
            text: the beginning, or the question.
            temperature: of sampling; 0 takes the likeliest token.
        """
        model, pixels = self._model, self._pixels
        if model is None or pixels is None:
            raise NothingLoaded("there is no picture yet", hint="choose one first")
        started = time.perf_counter()
        sample = Sampler(temperature=temperature, seed=seed)
        options: dict[str, Any] = {"max_tokens": max_tokens, "sample": sample}
        writer: Any = model
        begun: list[int] = []
        if isinstance(model, BlipForQuestionAnswering):
            tokens = writer.answer_ids(pixels, self._tokenizer.encode(text), **options)
        else:
            begun = self._tokenizer.encode(text, add_special_tokens=False) if text else []
            tokens = writer.caption_ids(pixels, begun, **options)
        read_s = time.perf_counter() - started
        counted = _Counted(tokens)
        for piece in self._tokenizer.decode_stream(counted, previous=begun):
            seconds = time.perf_counter() - started - read_s
            yield piece, {"tokens": counted.count, "readSeconds": read_s, "seconds": seconds}


class _Counted:
    """An iterator that counts."""

    def __init__(self, items: Any) -> None:
        self._items, self.count = iter(items), 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        item = next(self._items)
        self.count += 1
        return item
