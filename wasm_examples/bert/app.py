"""Vectors of sentences: how alike they are, and which are nearest to a query. The Python behind app.js.

web/bridge.py says what is asked of `Demo`.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow import kernels
from tallow.errors import CheckpointError, TallowError
from tallow.io.model_folder import load_folder, load_weights
from tallow.io.source import Opened
from tallow.models import SentenceEncoder
from tallow.models.sentence_folder import CONFIG, encoder_class, files_of, transformer_class

# The largest tokenizer.json in use take some 40 MB: room for any, yet no file chosen by mistake is read to its end.
MAX_JSON_BYTES = 64 << 20
SAFETENSORS, PYTORCH = WEIGHTS = (".safetensors", ".bin")
HEADER_AT = 8  # in a safetensors file, after the header's length
PYTORCH_HEADS = (b"PK", b"\x80")  # an archive, or a pickle, which PyTorch wrote before
DIRECTORY = "the files of a model lie on its page of the Hub, under Files and versions"


class NothingLoaded(TallowError, RuntimeError):
    """Vectors were asked for before there was a model."""


class Demo:
    """A model, and the vectors of the texts that it has been given."""

    def __init__(self) -> None:
        self._encoder: SentenceEncoder | None = None
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        self._texts: list[str] = []

    def wanted(self, *, modules: str | None = None, config: str | None = None) -> dict[str, list[str]]:
        """The names of the files of a model, and of its folders with weights, given what its `modules.json` and
        `config.json` say; None without one.

        Raises:  CheckpointError for a model that makes no vectors of texts, before its weights are read
        """
        if config is not None:
            with _temporary_folder():
                Path(CONFIG).write_text(config, encoding="utf-8")
                (encoder_class if modules is None else transformer_class)(Path())
        files = files_of(None if modules is None else modules.encode())
        return {name: list(names) for name, names in files._asdict().items()}

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name.endswith(SAFETENSORS):
            if head[HEADER_AT : HEADER_AT + 1] != b"{":
                raise CheckpointError(f"{name} is no safetensors file", mend=DIRECTORY)
        elif name.endswith(PYTORCH):
            if not head.startswith(PYTORCH_HEADS):
                raise CheckpointError(f"{name} is no file of PyTorch's", mend=DIRECTORY)
        elif size is not None and size > MAX_JSON_BYTES:
            raise CheckpointError(f"{name}: {size} bytes are too many for it", mend=DIRECTORY)
        elif head.lstrip()[:1] not in (b"{", b"["):
            raise CheckpointError(f"{name} is not JSON", mend=DIRECTORY)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Take a model's files, by their names in its folder. Its weights stay where they are."""

        def read(path: str) -> dict[str, tl.Tensor]:
            name = Path(path).as_posix()
            return load_weights(Opened(files[name], name))

        def weights(part: Path) -> dict[str, tl.Tensor]:
            return load_folder(part, read)

        with _temporary_folder():
            for name, data in files.items():
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(b"" if name.endswith(WEIGHTS) else data)
            encoder = SentenceEncoder.assemble(Path(), weights, dtype=tl.float32)
        self._encoder = encoder
        self._vectors.clear()
        self._texts = []
        config, kernel = encoder.model.config, kernels.info()
        return {
            "layers": config.num_hidden_layers,
            "width": config.hidden_size,
            "limit": encoder.max_length,
            "parameters": sum(parameter.numel() for parameter in encoder.model.parameters()),
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    def generate(self, *, texts: list[str]) -> Generator[tuple[str, dict[str, float]]]:
        """Make the vectors of the texts, one after the other; nothing is shown before all are there."""
        encoder = self._loaded()
        stats = {"done": 0, "made": 0, "tokens": 0, "cut": 0, "seconds": 0.0}
        for text in texts:
            # One text at a time: there is one thread, so a batch would be no faster, and would be longer in stopping.
            tokens = len(encoder.tokenizer.encode(text))
            limit = encoder.max_length or tokens
            stats["cut"] += tokens > limit
            if text not in self._vectors:
                started = time.perf_counter()
                self._vectors[text] = encoder.encode(text, normalize=True)
                stats["seconds"] += time.perf_counter() - started
                stats["made"] += 1
                stats["tokens"] += min(tokens, limit)
            stats["done"] += 1
            yield "", stats
        self._texts = texts  # not before: a reader who stops it searches what was there
        self._vectors = {text: self._vectors[text] for text in texts}

    def similarities(self) -> npt.NDArray[np.float32]:
        """The cosines of all pairs of texts, (N, N), row by row."""
        vectors_ND = self._matrix()
        return (vectors_ND @ vectors_ND.T).ravel()

    def search(self, *, query: str) -> dict[str, Any]:
        """The cosine of each text with the query, and the texts: the page may be a comparison behind."""
        started = time.perf_counter()
        vector_D = self._loaded().encode(query, normalize=True)
        scores = self._matrix() @ vector_D
        return {"texts": self._texts, "scores": scores, "seconds": time.perf_counter() - started}

    def _loaded(self) -> SentenceEncoder:
        if self._encoder is None:
            raise NothingLoaded("there is no model yet", mend="choose one first")
        return self._encoder

    def _matrix(self) -> npt.NDArray[np.float32]:
        if not self._texts:
            raise NothingLoaded("there are no vectors yet", mend="press Compare first")
        return np.stack([self._vectors[text] for text in self._texts])


@contextlib.contextmanager
def _temporary_folder() -> Generator[None]:
    """The working folder, for a while; so errors name files as the page does."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield
