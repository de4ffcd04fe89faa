"""The Python behind app.js: a language model answers conversations.

web/worker/bridge.py documents the methods of `Demo`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import chats
import numpy as np
import numpy.typing as npt
import storyteller
from answers import Answer, Message, Settings

from tallow import kernels
from tallow.errors import CheckpointError, TallowError
from tallow.io import gguf
from tallow.io.model_folder import check_head, memory_folder, refuse_mistaken
from tallow.io.source import Opened, shown
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG

GGUF_FILE = "GGUF file"  # its name in `Demo.load`, which the page shows while it reads the file


class NothingLoaded(TallowError, RuntimeError):
    """An answer was requested before a model was loaded."""


class Answering(Protocol):
    """A model that answers."""

    model: CausalLM

    def traits(self) -> dict[str, Any]:
        """Return what the page needs to know to offer the model's settings."""

    def answer(self, messages: list[Message], settings: Settings) -> Iterator[Answer]:
        """Yield the answer to a conversation piece by piece, each with the counts so far."""

    def count(self, messages: list[Message], settings: Settings) -> int:
        """Return how many tokens of the context a conversation takes."""


class Demo:
    """A model and its memory of the last conversation."""

    def __init__(self) -> None:
        self._loaded: Answering | None = None

    def list_files(self, *, config: str | None = None) -> dict[str, Any]:
        """Return the names of a folder's files. `config` is the text of its config.json, None if missing.

        Raises:  CheckpointError if it is no language model; raised before its weights are read
        """
        # Not at the top: the page starts without them.
        from tallow.models.auto import model_class
        from tallow.models.generation_config import GENERATION
        from tallow.text import tokenizer_folder as tokenizer

        if config is not None:
            with memory_folder({CONFIG: config.encode()}):
                _require_language_model(model_class(Path()))
        optional = [*tokenizer.SETTINGS, tokenizer.TEMPLATE, tokenizer.OLD_TEMPLATE, GENERATION]
        return {"required": [CONFIG], "optional": optional, "weights": [""], "tokenizers": [tokenizer.FILES]}

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name == GGUF_FILE:
            if not head.startswith(gguf.MAGIC):
                refuse_mistaken("the file", head, "a GGUF file")
                raise CheckpointError(
                    f"the file is not a GGUF file: it starts with {shown(head[:4])}",
                    hint="choose a .gguf file, or the folder of a model with safetensors files",
                )
        else:
            check_head(name, head, size)
        return None

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a GGUF file, or a model's folder by the paths in it; the packaged story model if there are no files."""
        if not files:
            self._loaded = storyteller.Storyteller()
        elif GGUF_FILE in files:
            self._loaded = chats.Chat(_load_gguf(files[GGUF_FILE]))
        else:
            self._loaded = chats.Chat(_load_folder(files))
        model, kernel = self._loaded.model, kernels.info()
        _, kv_heads, head_dim = model.cache_shape
        return {
            "layers": model.config.num_hidden_layers,
            "width": model.config.hidden_size,
            "context": model.context_length,
            "cacheBytes": 2 * 4 * kv_heads * head_dim * len(model.windows),  # of a token
            "parameters": model.num_parameters(),
            "kernels": kernel.library if kernel.kernels else str(kernel),
            **self._loaded.traits(),
        }

    def generate(self, *, messages: list[Message], **settings: Any) -> Generator[Answer]:
        """Yield the answer to a conversation piece by piece, each with the counts so far.

        Args:
            messages: [{"role": "user", "content": "..."}, ...], as chat templates take them.
            settings: the fields of `Settings`.
        """
        yield from self._answering().answer(messages, Settings(**settings))

    def count(self, *, messages: list[Message], **settings: Any) -> int:
        """Return how many tokens of the context a conversation takes, with the arguments of `generate`."""
        return self._answering().count(messages, Settings(**settings))

    def _answering(self) -> Answering:
        if self._loaded is None:
            raise NothingLoaded("there is no model yet", hint="choose a model first")
        return self._loaded


def _load_gguf(data: npt.NDArray[np.uint8]) -> CausalLM:
    """Return the model with its tokenizer. Quantised matrices are views of `data`."""
    from tallow.models import gguf_models  # not at the top: the page starts without it

    return gguf_models.language_model(gguf.load(Opened(data, "The GGUF file")))


def _load_folder(files: dict[str, npt.NDArray[np.uint8]]) -> CausalLM:
    """Return the model with its tokenizer. Weights are views of the files."""
    from tallow.models.auto import model_class
    from tallow.models.generation_config import GenerationConfig
    from tallow.text.tokenizer import Tokenizer

    with memory_folder(files) as weights:
        folder = Path()
        kind = model_class(folder)
        _require_language_model(kind)
        model = kind.assemble(kind.config_class.from_json(CONFIG), weights(folder))
        model.tokenizer = Tokenizer.from_pretrained(folder)
        model.generation_config = GenerationConfig.from_folder(folder)
    return model


def _require_language_model(kind: type) -> None:
    if not issubclass(kind, CausalLM):
        raise CheckpointError(f"the model is a {kind.__name__}, which does not write", hint="choose a language model")
