"""A llama2.c model tells a story: the Python behind app.js. web/bridge.py says what is asked of `Demo`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from tallow.models.llama import Llama

from tallow import kernels
from tallow.errors import CheckpointError, TallowError
from tallow.generation import Sampler, decode_stream, generate
from tallow.io import llama2c
from tallow.text.llama2c import Llama2cTokenizer

BOS, EOS = 1, 2
# Forty times the tokenizer of Llama 2: room for any, yet no model chosen by mistake is read to its end.
MAX_TOKENIZER_BYTES = 16 << 20


class NothingLoaded(TallowError, RuntimeError):
    """A story was asked for before there was a model."""


class Demo:
    """A model with its tokenizer."""

    def __init__(self) -> None:
        self._loaded: tuple[Llama, Llama2cTokenizer] | None = None

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name == "tokenizer":
            if size is not None and size > MAX_TOKENIZER_BYTES:
                raise CheckpointError(
                    f"tokenizer: {size} bytes are too many for one", mend="choose the tokenizer's file"
                )
            return None
        header = llama2c.read_header(head, name)
        if size is not None:
            llama2c.check_size(header, size, name)
        return header.file_bytes

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        model = Llama.from_llama2c(files["model"])
        tokenizer = Llama2cTokenizer.load(files["tokenizer"], vocab_size=model.config.vocab_size)
        self._loaded = model, tokenizer
        config = model.config
        return {
            "layers": config.num_hidden_layers,
            "width": config.hidden_size,
            "vocabulary": config.vocab_size,
            "context": config.max_position_embeddings,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "kernels": str(kernels.info()),
        }

    def unload(self) -> None:
        self._loaded = None

    def generate(
        self, *, prompt: str, steps: int, temperature: float, top_p: float, seed: int
    ) -> Iterator[tuple[str, dict[str, float]]]:
        """The prompt, then the story; with what has been counted so far."""
        if self._loaded is None:
            raise NothingLoaded("there is no model yet", mend="choose a model and its tokenizer first")
        model, tokenizer = self._loaded
        sample = Sampler(temperature=temperature, top_p=top_p, seed=seed)
        ids = tokenizer.encode(prompt, bos=True)
        # `steps` counts positions, as in run.c: those of the prompt too.
        tokens = generate(model, ids, max_tokens=max(0, steps - len(ids) + 1), sample=sample, stop_ids={BOS, EOS})
        stats = {"prompt_tokens": len(ids), "tokens": 0, "prompt_s": 0.0, "tokens_s": 0.0}
        yield prompt, stats
        started = first = time.perf_counter()
        for count, piece in enumerate(decode_stream(tokenizer, tokens), start=1):
            now = time.perf_counter()
            if count == 1:
                first = now
            yield piece, {**stats, "tokens": count, "prompt_s": first - started, "tokens_s": now - first}
