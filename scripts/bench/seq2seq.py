"""Encoder-decoder models with random weights: a source of 64 tokens, 64 new ones, greedy, on one thread.

transformers has the same weights, if it is installed. A call reads the source and writes the text; times are a token's.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import in_turn
from tallow.models import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration
from tallow.models.seq2seq.model import Seq2SeqLM

NAME = "seq2seq"
TOKENS = 64
T5_SMALL = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
BART_BASE = {"vocab_size": 50265, "d_model": 768} | {
    f"{half}_{name}": size
    for half in ("encoder", "decoder")
    for name, size in (("layers", 6), ("attention_heads", 12), ("ffn_dim", 3072))
}
SHAPES = {
    "T5 small": (T5ForConditionalGeneration, T5Config, T5_SMALL),
    "BART base": (BartForConditionalGeneration, BartConfig, BART_BASE),
}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    tl.set_num_threads(1)
    ids = np.random.default_rng(0).integers(5, 30_000, TOKENS).tolist()
    rows: list[Row] = []
    for shape, (model_class, config_class, sizes) in SHAPES.items():
        tl.manual_seed(0)
        model = model_class(config_class(**sizes, eos_token_id=())).eval()
        works, names = [_ours(model, ids)], ["tallow"]
        if find_spec("transformers"):
            works.append(_theirs(model, sizes, ids))
            names.append("transformers")
        timings = in_turn(1.0, options["repeats"], *works)
        timings += in_turn(1.0, options["repeats"], _ours(model.quantize("int8"), ids))
        names.append("tallow, int8")
        medians = dict(zip(names, (timing.median_s / TOKENS * 1e3 for timing in timings), strict=True))
        rows += [
            {"shape": shape, "library": name, "ms a token": ms, "of tallow's": ms / medians["tallow"]}
            for name, ms in medians.items()
        ]
    return {"rows": rows, "notes": ["medians; tallow and transformers alternate"]}


def _ours(model: Seq2SeqLM, ids: list[int]) -> Any:
    return lambda: list(model.generate_ids(ids, max_tokens=TOKENS))


def _theirs(model: Seq2SeqLM, sizes: dict[str, Any], ids: list[int]) -> Any:
    """Return the same work in transformers, with the same weights."""
    import torch
    import transformers

    torch.set_num_threads(1)
    name = type(model).__name__
    model_class = getattr(transformers, name)
    config = model_class.config_class(**sizes, eos_token_id=None, decoder_start_token_id=model.start_ids[0])
    with TemporaryDirectory() as folder:
        tl.save(model.state_dict(), Path(folder) / "model.safetensors")
        config.save_pretrained(folder)
        reference = model_class.from_pretrained(folder).eval()
    reference.generation_config.forced_eos_token_id = None
    source = torch.tensor([ids])

    def work() -> list[int]:
        return reference.generate(source, max_new_tokens=TOKENS, do_sample=False)[0, 1:].tolist()

    assert work() == _ours(model, ids)()
    return work
