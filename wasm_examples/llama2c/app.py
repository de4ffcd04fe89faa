"""The Python behind app.js: a language model continues texts. web/worker/bridge.py documents the methods of `Demo`."""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import kernels
from tallow.errors import ArgumentError, CheckpointError, TallowError
from tallow.generation import Sampler, generate, timed
from tallow.io import gguf, llama2c
from tallow.io.source import Opened, shown
from tallow.models import stories
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders.llama import Llama
from tallow.text.llama2c import Llama2cTokenizer

# Forty times the size of Llama 2's tokenizer. A larger file was chosen by mistake and is not read.
MAX_TOKENIZER_BYTES = 16 << 20
ADDRESS_SPACE = 1 << 32  # of WebAssembly
# The names of the files in `Demo.load`, which the page shows while it reads them.
MODEL, TOKENIZER, GGUF_FILE = "model", "tokenizer", "GGUF file"


class NothingLoaded(TallowError, RuntimeError):
    """A story was requested before a model was loaded."""


class TextTooLong(TallowError, MemoryError):
    """The cache for a text does not fit the tab's memory."""


class Demo:
    """A model that continues texts, without its chat template."""

    def __init__(self) -> None:
        self._model: CausalLM | None = None

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name == GGUF_FILE:
            if not head.startswith(gguf.MAGIC):
                from tallow.io.model_folder import refuse_mistaken  # not at the top: the page starts without it

                refuse_mistaken("the file", head, "a GGUF file")
                raise CheckpointError(
                    f"the file is not a GGUF file: it starts with {shown(head[:4])}",
                    hint="choose a .gguf file; a llama2.c checkpoint needs its tokenizer too",
                )
            return None
        if head.startswith(gguf.MAGIC):
            raise CheckpointError(f"the {name} is a GGUF file", hint="load it alone: it contains its tokenizer")
        if name == TOKENIZER:
            if size is not None and size > MAX_TOKENIZER_BYTES:
                raise CheckpointError(f"the tokenizer is too large: {size} bytes", hint="choose the tokenizer's file")
            return None
        header = llama2c.read_header(head, name)
        if size is not None:
            llama2c.check_size(header, size, name)
        return header.file_bytes

    def load(self, files: dict[str, npt.NDArray[np.uint8]]) -> dict[str, Any]:
        """Load a GGUF file, or a llama2.c checkpoint and its tokenizer; the packaged model if there are no files."""
        self._model = model = _load_gguf(files[GGUF_FILE]) if GGUF_FILE in files else _load_llama2c(files)
        config, kernel = model.config, kernels.info()
        return {
            "layers": config.num_hidden_layers,
            "width": config.hidden_size,
            "vocabulary": config.vocab_size,
            "context": config.max_position_embeddings,
            "parameters": model.num_parameters(),
            "kernels": kernel.library if kernel.kernels else str(kernel),
        }

    def generate(
        self, *, prompt: str, steps: int, temperature: float, top_p: float, seed: int
    ) -> Generator[tuple[str, dict[str, float]]]:
        """Yield the prompt, then the story piece by piece, each with the counts so far."""
        if self._model is None:
            raise NothingLoaded("there is no model yet", hint="choose a model and its tokenizer first")
        if steps < 1:
            raise ArgumentError(f"Steps cannot be {steps}", hint="write 1 or more")
        model, tokenizer = self._model, self._model.tokenizer
        sample = Sampler(temperature=temperature, top_p=top_p, seed=seed)
        ids = tokenizer.encode_prompt(prompt)
        steps = min(steps, model.context_length)
        # As in run.c, `steps` counts the prompt too, without BOS.
        cache_bytes = _cache_bytes(model, max(steps, len(ids)))
        try:
            if cache_bytes > ADDRESS_SPACE:
                raise MemoryError
            count = max(0, steps - len(ids) + 1)
            tokens = timed(generate(model, ids, max_tokens=count, sample=sample, stop_ids=model.stop_ids))
        except MemoryError as error:
            raise TextTooLong(
                f"a text of {steps} tokens needs {cache_bytes / 1e9:.1f} GB of memory besides the model",
                hint="choose fewer steps or a smaller model",
            ) from error
        prompt_tokens = len(ids) - (ids[:1] == [tokenizer.bos_token_id])
        shown = prompt if len(ids) <= steps + 1 else "".join(tokenizer.decode_stream(ids[: steps + 1]))
        for piece in chain([shown], tokenizer.decode_stream(tokens, previous=ids)):
            yield piece, tokens.stats | {"prompt_tokens": prompt_tokens}


def _cache_bytes(model: CausalLM, length: int) -> int:
    """Return the size of the float32 keys and values of a text."""
    _, kv_heads, head_dim = model.cache_shape
    positions = sum(length if window is None else min(length, window) for window in model.windows)
    return 2 * 4 * kv_heads * head_dim * positions


def _load_llama2c(files: dict[str, npt.NDArray[np.uint8]]) -> Llama:
    if not files:
        return stories.load()[0]
    model = Llama.from_llama2c(files[MODEL])
    model.tokenizer = Llama2cTokenizer.load(files[TOKENIZER], vocab_size=model.vocab_size, name="The tokenizer")
    return model


def _load_gguf(data: npt.NDArray[np.uint8]) -> CausalLM:
    """Return the model with its tokenizer. Quantised matrices are views of `data`."""
    from tallow.models import gguf_models  # not at the top: the page starts without it

    return gguf_models.language_model(gguf.load(Opened(data, "The GGUF file")))
