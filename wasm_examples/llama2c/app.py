"""A small Llama tells a story: the Python behind app.js. web/bridge.py says what is asked of `Demo`."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import kernels
from tallow.errors import ArgumentError, CheckpointError, TallowError
from tallow.generation import Sampler, decode_stream, generate
from tallow.io import llama2c
from tallow.models import stories
from tallow.models.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer

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
        """Take the model of these files, or without any the one that comes with tallow."""
        if files:
            model = Llama.from_llama2c(files["model"])
            tokenizer = Llama2cTokenizer.load(files["tokenizer"], vocab_size=model.vocab_size, name="The tokenizer")
        else:
            model, tokenizer = stories.load()
        self._loaded = model, tokenizer
        config, kernel = model.config, kernels.info()
        return {
            "layers": config.num_hidden_layers,
            "width": config.hidden_size,
            "vocabulary": config.vocab_size,
            "context": config.max_position_embeddings,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    def generate(
        self, *, prompt: str, steps: int, temperature: float, top_p: float, seed: int
    ) -> Generator[tuple[str, dict[str, float]]]:
        """The prompt, then the story; with what has been counted so far."""
        if self._loaded is None:
            raise NothingLoaded("there is no model yet", mend="choose a model and its tokenizer first")
        if steps < 1:
            raise ArgumentError(f"Steps cannot be {steps}", mend="write 1 or more")
        model, tokenizer = self._loaded
        sample = Sampler(temperature=temperature, top_p=top_p, seed=seed)
        ids = tokenizer.encode(prompt, bos=True)
        steps = min(steps, model.context_length)
        # As in run.c, `steps` counts the prompt too, without BOS.
        tokens = generate(
            model,
            ids,
            max_tokens=max(0, steps - len(ids) + 1),
            sample=sample,
            stop_ids=model.config.eos_token_id,
        )
        stats = {"prompt_tokens": len(ids) - 1, "tokens": 0, "prompt_s": 0.0, "tokens_s": 0.0}
        yield "".join(decode_stream(tokenizer, ids[1 : steps + 1], previous=ids[0])), stats
        for piece in decode_stream(tokenizer, _timed(tokens, stats), previous=ids[-1]):
            yield piece, stats


def _timed(tokens: Iterator[int], stats: dict[str, float]) -> Iterator[int]:
    """Pass tokens on and note in `stats` how many there were, how long the first took, and how long the others."""
    started = first = time.perf_counter()
    for token in tokens:
        now = time.perf_counter()
        if not stats["tokens"]:
            first = now
            stats["prompt_s"] = now - started
        stats["tokens"] += 1
        stats["tokens_s"] = now - first
        yield token
