"""The Python behind app.js: sentence vectors, their similarities, and search by a query.

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
from tallow.io import gguf
from tallow.io.model_folder import check_head, memory_folder
from tallow.io.source import Opened
from tallow.models import SentenceEncoder, glosses
from tallow.models.encoders.sentence_folder import CONFIG, encoder_class, files_of, transformer_class

GGUF_FILE = "model.gguf"


class NothingLoaded(TallowError, RuntimeError):
    """Vectors were requested before a model was loaded."""


class Demo:
    """A model, and the vectors of the texts that it has encoded."""

    def __init__(self) -> None:
        self._encoder: SentenceEncoder | None = None
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        self._texts: list[str] = []

    def list_files(self, *, modules: str | None = None, config: str | None = None) -> dict[str, Any]:
        """Return the names of a model's files, and of its folders with weights.

        Args:
            modules, config: the text of its `modules.json` and `config.json`, None if missing.

        Raises:
            CheckpointError: the model does not encode texts; raised before its weights are read.
        """
        files = files_of(None if modules is None else modules.encode())
        if config is not None and CONFIG in files.required:
            with memory_folder({CONFIG: config.encode()}):
                (encoder_class if modules is None else transformer_class)(Path())
        return files._asdict()

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name != GGUF_FILE:
            check_head(name, head, size)
        elif not head.startswith(gguf.MAGIC):
            raise CheckpointError("the file is not a GGUF file", hint="choose a .gguf file, or a model's folder")
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a model from its files, by their paths in its folder; without files the packaged one. The tensors view
        the weights in place."""
        encoder = self._assemble(files) if files else glosses.load()
        self._encoder = encoder
        self._vectors.clear()
        self._texts = []
        config, kernel = getattr(encoder.model, "config", None), kernels.info()
        return {
            "layers": config.num_hidden_layers if config else 0,
            "width": config.hidden_size if config else encoder.model.embedding.embedding_dim,
            "limit": encoder.max_length,
            "parameters": encoder.model.num_parameters(),
            "knows": "" if files else glosses.KNOWS,
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    @staticmethod
    def _assemble(files: dict[str, npt.NDArray[np.uint8]]) -> SentenceEncoder:
        """Build a model from its files, or from a GGUF file, whose matrices stay quantised."""
        if GGUF_FILE in files:
            return SentenceEncoder.from_gguf(Opened(files[GGUF_FILE], "the GGUF file"))

        with memory_folder(files) as weights:
            return SentenceEncoder.assemble(Path(), weights, dtype=tl.float32)

    def generate(self, *, texts: list[str]) -> Generator[tuple[str, dict[str, float]]]:
        """Encode the texts one after the other. The results are available when all are encoded."""
        encoder = self._loaded()
        stats = {"done": 0, "encoded": 0, "tokens": 0, "cut": 0, "seconds": 0.0}
        for text in texts:
            # One text at a time: with one thread, a batch would not be faster, and would take longer to stop.
            tokens = encoder.count_tokens(text)
            limit = encoder.max_length or tokens
            stats["cut"] += tokens > limit
            if text not in self._vectors:
                started = time.perf_counter()
                self._vectors[text] = encoder.encode(text, normalize=True)
                stats["seconds"] += time.perf_counter() - started
                stats["encoded"] += 1
                stats["tokens"] += min(tokens, limit)
            stats["done"] += 1
            yield "", stats
        self._texts = texts  # only now: after a stop, search uses the previous texts
        self._vectors = {text: self._vectors[text] for text in texts}

    def similarities(self) -> npt.NDArray[np.float32]:
        """Return the cosine similarities of all pairs of texts, (N, N), flattened row by row."""
        vectors_ND = self._matrix()
        return (vectors_ND @ vectors_ND.T).ravel()

    def search(self, *, query: str) -> dict[str, Any]:
        """Return the texts and each one's cosine similarity to the query; the page may still show earlier texts.

        `known` and `knowsQuery` say whose vectors are not zero: that of words which the model does not know is.
        """
        started = time.perf_counter()
        vector_D = self._loaded().encode(query, normalize=True)
        vectors_ND = self._matrix()
        return {
            "texts": self._texts,
            "scores": vectors_ND @ vector_D,
            "known": vectors_ND.any(axis=1).tolist(),
            "knowsQuery": bool(vector_D.any()),
            "seconds": time.perf_counter() - started,
        }

    def _loaded(self) -> SentenceEncoder:
        if self._encoder is None:
            raise NothingLoaded("there is no model yet", hint="choose one first")
        return self._encoder

    def _matrix(self) -> npt.NDArray[np.float32]:
        if not self._texts:
            raise NothingLoaded("there are no vectors yet", hint="press Compare first")
        return np.stack([self._vectors[text] for text in self._texts])
