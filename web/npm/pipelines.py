"""The pipelines behind pipeline.js, which are those of `tallow.transformers`."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError
from tallow.io.images import decode_image
from tallow.transformers import TextStreamer, pipeline

Emit = Callable[[Any], None]
FLOATS = {None: tl.float32, "auto": tl.float32, "fp32": tl.float32, "fp16": tl.float16}
BLOCKS = {"q8": "int8", "int8": "int8", "uint8": "int8", "q4": "q4_0"}
VECTORS = ("feature-extraction", "image-feature-extraction")


class Downloads:
    """A stream that passes the lines of downloads on as progress."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def write(self, text: str) -> int:
        if line := text.strip():
            self._emit({"status": "progress", "file": line})
        return len(text)

    def flush(self) -> None:
        pass


class Streamer(TextStreamer):
    """Passes text on to the page."""

    def __init__(self, emit: Emit, tokenizer: Any, **options: Any) -> None:
        super().__init__(tokenizer, **options)
        self._emit = emit

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        if text:
            self._emit(text)


def opened(task: str, model: str | None, dtype: str | None, revision: str | None, emit: Emit | None) -> Any:
    """Return the pipeline of a task, with a model of the Hub or, for None, of the package.

    Raises:  ArgumentError for an unknown dtype; as `pipeline`
    """
    if dtype not in FLOATS and dtype not in BLOCKS:
        raise ArgumentError(f"dtype={dtype!r:.80}", hint=f"use one of {', '.join([*filter(None, FLOATS), *BLOCKS])}")
    with contextlib.redirect_stderr(Downloads(emit)) if emit else contextlib.nullcontext():
        made = pipeline(task, model, revision=revision, dtype=FLOATS.get(dtype, tl.float32))
    if dtype in BLOCKS:
        made.model.quantize(BLOCKS[dtype])
    return made


def computed(made: Any, keywords: dict[str, Any], streams: dict[str, bool] | None, emit: Emit | None) -> Any:
    """Return the results of a call: arrays of samples and bytes of pictures arrive as buffers."""
    name = made.task
    keywords = {key: readable(name, value) for key, value in keywords.items()}
    if name == "text-generation":
        keywords.setdefault("do_sample", False)  # transformers.js takes the likeliest token
        if streams is not None and emit:
            keywords["streamer"] = Streamer(emit, made.tokenizer, **streams)
    if name in VECTORS:
        return vectors(made, **keywords)
    inputs = keywords.pop("inputs", None)
    return made(inputs, **keywords) if inputs is not None else made(**keywords)


def vectors(made: Any, inputs: Any, pooling: str = "none", normalize: bool = False, pool: bool = False) -> Any:
    """Return a tensor of features: of each position, or with `pooling` of each input.

    Raises:  ArgumentError for another pooling than none, mean, cls and last_token
    """
    texts = inputs if isinstance(inputs, list) else [inputs]
    options = {"pool": True} if pool else {}
    rows = [made(text, return_tensors=True, **options) for text in texts]
    poolings = {
        "none": lambda x: x,
        "mean": lambda x: x.mean(dim=1),
        "cls": lambda x: x[:, 0],
        "first_token": lambda x: x[:, 0],
        "last_token": lambda x: x[:, -1],
    }
    if pooling not in poolings:
        raise ArgumentError(f"pooling={pooling!r:.80}", hint=f"use one of {', '.join(poolings)}")
    rows = [poolings[pooling](row) for row in rows]
    longest = max(row.shape[1] for row in rows)
    if rows[0].ndim == 3:
        rows = [tl.nn.functional.pad(row, (0, 0, 0, longest - row.shape[1])) for row in rows]
    whole = tl.cat(rows)
    if normalize:
        whole = tl.nn.functional.normalize(whole, dim=-1)
    values = np.ascontiguousarray(whole.float().numpy())
    return {"type": "float32", "dims": list(values.shape), "data": values.reshape(-1)}


def readable(task: str, value: Any) -> Any:
    """Return buffers as what they hold: samples, or a picture."""
    if isinstance(value, list):
        return [readable(task, each) for each in value]
    if isinstance(value, memoryview):
        return np.asarray(value, np.float32) if value.format == "f" else decode_image(bytes(value))
    return value


async def load_pillow() -> None:
    """Load the package that reads pictures."""
    if sys.platform == "emscripten" and importlib.util.find_spec("PIL") is None:
        import micropip

        await micropip.install("pillow")
