"""Perplexity of the built-in story model in each type of GGUF file, on 50,000 tokens of its test stories.

Compares products with the blocks as they are in the file, whose inputs are rounded to 8 bits, with float32 products and
the weights that the package gguf dequantises. The model's rows of 96 weights are extended by zeros to 256, so that all
matrices but one of a layer can have the formats with blocks of 256 weights; that changes nothing else.

Claim: within 1% of gguf's weights in float32, for every type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from stories import grammar
from stories.evaluation import BATCH, nats
from stories.plots import PLOTS
from stories.settings import Settings

import tallow as tl
from bench.report import Row
from tallow.io.gguf import GGUF
from tallow.models import AutoModel, Llama
from tallow.models.built_in import stories
from tallow.models.gguf.export import save_gguf
from tallow.models.gguf.names import NAMES
from tallow.models.gguf.recipes import RECIPES
from tallow.text.llama2c import BOS

NAME = "perplexity"
TOKENS = 50_000
WIDTH = 256  # of the rows
# The axis of each matrix that is the model's width.
AXES = {"embed_tokens": 1, "q_proj": 1, "k_proj": 1, "v_proj": 1, "o_proj": 0, "gate_proj": 1, "up_proj": 1}
AXES |= {"down_proj": 0}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    texts = list(_texts(options.get("tokens", TOKENS)))
    original = _widened(stories.load()[0])
    plain = perplexity(original, texts)
    rows: list[Row] = []
    for kind in options.get("types", RECIPES):
        path = Path(f"{kind}.gguf")
        save_gguf(original, path, kind)
        file = GGUF(path)
        infos = [file.info(name) for name in file]
        bits = 8 * sum(info.bytes for info in infos) / sum(info.count for info in infos)
        kept, reference = (perplexity(model, texts) for model in (AutoModel.from_pretrained(path), _reference(path)))
        row: Row = {"type": kind.lower(), "bits per weight": bits}
        row |= {"tallow": f"{kept:.4f}", "gguf in float32": f"{reference:.4f}", "of gguf": f"{kept / reference:.4f}"}
        rows.append(row | {"of the original": f"{kept / plain:.4f}"})
    count = sum(len(text) - 1 for text in texts)
    notes = [
        f"{count:,} tokens of {len(texts)} stories of the test set of scripts/train_stories.py, each after BOS",
        f"the original, in float32: {plain:.4f}",
    ]
    return {"rows": rows, "notes": notes}


def perplexity(model: Any, texts: list[list[int]]) -> float:
    """Return the perplexity per token of texts, each between two marks."""
    total = sum(nats(model, texts[start : start + BATCH]) for start in range(0, len(texts), BATCH))
    return math.exp(total / sum(len(text) - 1 for text in texts))


def _widened(model: Llama) -> Llama:
    """Return the same model with a width of WIDTH: zeros in all weights, and norms that divide by the old width."""
    config = model.config
    share = config.hidden_size / WIDTH
    sizes = {"hidden_size": WIDTH, "head_dim": config.head_width, "rms_norm_eps": config.rms_norm_eps * share}
    wide = Llama(replace(config, **sizes))
    state = {}
    for name, tensor in model.state_dict().items():
        array = tensor.numpy()
        axis = AXES.get(name.split(".")[-2])
        if axis is None:  # a norm
            array, axis = array * np.float32(math.sqrt(share)), 0
        added = [(0, 0)] * array.ndim
        added[axis] = (0, WIDTH - array.shape[axis])
        state[name] = tl.tensor(np.pad(array, added))
    wide.load_state_dict(state)
    return wide.eval()


def _texts(tokens: int) -> Iterator[list[int]]:
    """Yield the first test stories, of at least so many tokens in total; the model was trained on others."""
    settings = Settings()
    _, tokenizer = stories.load()
    for story in grammar.stories(PLOTS, settings.held_out, settings.seed):
        if tokens <= 0:
            return
        text = [BOS, *tokenizer.encode(story), BOS]
        tokens -= len(text) - 1
        yield text


def _reference(path: Path) -> Llama:
    """Return the model in float32 with the weights that the package gguf reads from the file."""
    model: Llama = AutoModel.from_pretrained(path, dtype=tl.float32)
    state = {}
    for tensor in gguf.GGUFReader(path).tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(tensor.shape[::-1])
        state[NAMES["Llama"].from_gguf(tensor.name)] = tl.tensor(array)
    model.load_state_dict(state)
    return model
