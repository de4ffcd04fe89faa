"""The Python behind app.js: a language model continues texts. web/bridge.py documents the methods of `Demo`."""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tallow import kernels
from tallow.errors import ArgumentError, CheckpointError, TallowError
from tallow.generation import Sampler, decode_stream, generate
from tallow.io import gguf, llama2c
from tallow.io.source import Opened
from tallow.models import stories
from tallow.models.causal_lm import CausalLM
from tallow.models.llama import Llama
from tallow.text.llama2c import BOS, Llama2cTokenizer
from tallow.text.tokenizer import Tokenizer

# Forty times the size of Llama 2's tokenizer. A larger file was chosen by mistake and is not read.
MAX_TOKENIZER_BYTES = 16 << 20
ADDRESS_SPACE = 1 << 32  # of WebAssembly
# The names of the files in `Demo.load`, which the page shows while it reads them.
MODEL, TOKENIZER, GGUF_FILE = "model", "tokenizer", "GGUF file"


class NothingLoaded(TallowError, RuntimeError):
    """A story was requested before a model was loaded."""


class TextTooLong(TallowError, MemoryError):
    """The cache for a text does not fit the tab's memory."""


class TextCodec(Protocol):
    """The interface to a model's tokenizer."""

    stop_ids: Collection[int]
    bos_token_id: int | None

    def encode(self, prompt: str) -> list[int]:
        """Return the ids of a prompt, with BOS if the model needs it."""

    def shown(self, prompt: str, ids: list[int], steps: int) -> str:
        """Return the text of the prompt that the page shows if a text has at most `steps` tokens."""

    def decode(self, tokens: Iterable[int], prompt_ids: list[int]) -> Iterator[str]:
        """Yield the text of the tokens that follow a prompt, in pieces."""


class Llama2cCodec:
    """The tokenizer of a llama2.c checkpoint. Texts are those of run.c."""

    def __init__(self, model: Llama, tokenizer: Llama2cTokenizer) -> None:
        self.stop_ids = model.config.eos_token_id
        self.bos_token_id: int | None = BOS
        self._tokenizer = tokenizer

    def encode(self, prompt: str) -> list[int]:
        return self._tokenizer.encode(prompt, bos=True)

    def shown(self, prompt: str, ids: list[int], steps: int) -> str:
        return "".join(decode_stream(self._tokenizer, ids[1 : steps + 1], previous=ids[0]))

    def decode(self, tokens: Iterable[int], prompt_ids: list[int]) -> Iterator[str]:
        return decode_stream(self._tokenizer, tokens, previous=prompt_ids[-1])


class GgufCodec:
    """The tokenizer in a GGUF file. The text is a continuation of the prompt, without the chat template."""

    def __init__(self, model: CausalLM, tokenizer: Tokenizer) -> None:
        model.tokenizer = tokenizer
        self.stop_ids = model.stop_ids
        self.bos_token_id = tokenizer.bos_token_id
        self._tokenizer = tokenizer

    def encode(self, prompt: str) -> list[int]:
        ids = self._tokenizer.encode(prompt)
        return [self.bos_token_id] if not ids and self.bos_token_id is not None else ids

    def shown(self, prompt: str, ids: list[int], steps: int) -> str:
        return prompt

    def decode(self, tokens: Iterable[int], prompt_ids: list[int]) -> Iterator[str]:
        return self._tokenizer.decode_stream(tokens, previous=prompt_ids)


class Demo:
    """A model with its tokenizer."""

    def __init__(self) -> None:
        self._loaded: tuple[CausalLM, TextCodec] | None = None

    def check(self, name: str, head: bytes, size: int | None) -> int | None:
        if name == GGUF_FILE:
            if not head.startswith(gguf.MAGIC):
                raise CheckpointError(
                    f"the file is not a GGUF file: it starts with {head[:4]!r}",
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
        if GGUF_FILE in files:
            model, codec = _load_gguf(files[GGUF_FILE])
        else:
            model, codec = _load_llama2c(files)
        self._loaded = model, codec
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
        if self._loaded is None:
            raise NothingLoaded("there is no model yet", hint="choose a model and its tokenizer first")
        if steps < 1:
            raise ArgumentError(f"Steps cannot be {steps}", hint="write 1 or more")
        model, codec = self._loaded
        sample = Sampler(temperature=temperature, top_p=top_p, seed=seed)
        ids = codec.encode(prompt)
        steps = min(steps, model.context_length)
        # As in run.c, `steps` counts the prompt too, without BOS.
        cache_bytes = _cache_bytes(model, max(steps, len(ids)))
        try:
            if cache_bytes > ADDRESS_SPACE:
                raise MemoryError
            tokens = generate(
                model,
                ids,
                max_tokens=max(0, steps - len(ids) + 1),
                sample=sample,
                stop_ids=codec.stop_ids,
            )
        except MemoryError as error:
            raise TextTooLong(
                f"a text of {steps} tokens needs {cache_bytes / 1e9:.1f} GB of memory besides the model",
                hint="choose fewer steps or a smaller model",
            ) from error
        prompt_tokens = len(ids) - (ids[:1] == [codec.bos_token_id])
        stats = {"prompt_tokens": prompt_tokens, "tokens": 0, "prompt_s": 0.0, "tokens_s": 0.0}
        yield codec.shown(prompt, ids, steps), stats
        for piece in codec.decode(_timed(tokens, stats), ids):
            yield piece, stats


def _cache_bytes(model: CausalLM, length: int) -> int:
    """Return the size of the float32 keys and values of a text."""
    _, kv_heads, head_dim = model.cache_shape
    positions = sum(length if window is None else min(length, window) for window in model.windows)
    return 2 * 4 * kv_heads * head_dim * positions


def _load_llama2c(files: dict[str, npt.NDArray[np.uint8]]) -> tuple[Llama, TextCodec]:
    if not files:
        model, tokenizer = stories.load()
    else:
        model = Llama.from_llama2c(files[MODEL])
        tokenizer = Llama2cTokenizer.load(files[TOKENIZER], vocab_size=model.vocab_size, name="The tokenizer")
    return model, Llama2cCodec(model, tokenizer)


def _load_gguf(data: npt.NDArray[np.uint8]) -> tuple[CausalLM, TextCodec]:
    """Return the model and its tokenizer. Quantised matrices are views of `data`."""
    from tallow.models import gguf_models  # not at the top: the page starts without it

    file = gguf.load(Opened(data, "The GGUF file"))
    model = gguf_models.load(file)
    if not isinstance(model, CausalLM):
        what = f"the model is a {type(model).__name__}, which does not write texts"
        raise CheckpointError(what, hint="choose a language model")
    return model, GgufCodec(model, Tokenizer.from_gguf(file))


def _timed(tokens: Iterator[int], stats: dict[str, float]) -> Iterator[int]:
    """Yield the tokens, and update `stats`: their number, the time of the first, and the time of the others."""
    started = first = time.perf_counter()
    for token in tokens:
        now = time.perf_counter()
        if not stats["tokens"]:
            first = now
            stats["prompt_s"] = now - started
        stats["tokens"] += 1
        stats["tokens_s"] = now - first
        yield token
