"""Many rows at once, in bfloat16 and int8, on one thread: linear layers, a prompt of a language model, pictures.

PyTorch computes in bfloat16, with the same weights. The models have the shapes of stories110M (a prompt of 512 tokens)
and of ViT-base (one picture), and random weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers

import tallow as tl
from bench.report import Row
from bench.timing import in_turn
from tallow.models import Llama, ViTModel

NAME = "prompts"
LINEAR = ((128, 2048, 2048), (512, 2048, 2048), (512, 768, 768))  # rows, in_features, out_features
PROMPT = 512
STORIES_110M = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12}
QUANTS = ("int8",)

Work = Callable[[], Any]


def measure(options: dict[str, Any]) -> dict[str, Any]:
    tl.set_num_threads(1)
    torch.set_num_threads(1)
    rows: list[Row] = []
    for name, theirs, ours in (*_linear(), *_models()):
        with tl.inference_mode(), torch.inference_mode():
            reference, *timings = in_turn(1.0, options["repeats"], theirs, *ours.values())
        for weights, timing in zip(ours, timings, strict=True):
            rows.append(
                {
                    "work": name,
                    "weights": weights,
                    "ms": timing.median_s * 1e3,
                    "PyTorch, bfloat16": reference.median_s * 1e3,
                    "times PyTorch's speed": reference.median_s / timing.median_s,
                }
            )
    return {"rows": rows, "notes": ["medians; all of a row's libraries alternate"]}


def _linear() -> Iterator[tuple[str, Work, dict[str, Work]]]:
    rng = np.random.default_rng(0)
    for rows, width, out in LINEAR:
        x, weight = (rng.standard_normal((n, width), dtype=np.float32) for n in (rows, out))
        theirs = torch.from_numpy(x).bfloat16(), torch.from_numpy(weight).bfloat16()
        ours = tl.from_numpy(x).to(tl.bfloat16), tl.from_numpy(weight).to(tl.bfloat16)
        yield (
            f"linear, {rows} rows of {width} to {out}",
            lambda theirs=theirs: torch.nn.functional.linear(*theirs),
            {"bfloat16": lambda ours=ours: tl.nn.functional.linear(*ours)},
        )


def _models() -> Iterator[tuple[str, Work, dict[str, Work]]]:
    rng = np.random.default_rng(0)
    config = transformers.LlamaConfig(**STORIES_110M, num_key_value_heads=12, max_position_embeddings=1024)
    ids = rng.integers(0, config.vocab_size, (1, PROMPT))
    yield _model(f"stories110M, a prompt of {PROMPT}", Llama, transformers.LlamaForCausalLM(config), ids)
    pixels = rng.standard_normal((1, 3, 224, 224), dtype=np.float32)
    yield _model("ViT-base, a picture", ViTModel, transformers.ViTModel(transformers.ViTConfig()), pixels)


def _model(name: str, model_class: Any, reference: Any, x: Any) -> tuple[str, Work, dict[str, Work]]:
    reference = reference.bfloat16().eval()
    with TemporaryDirectory() as folder:
        reference.save_pretrained(Path(folder))
        half = model_class.from_pretrained(folder, dtype=tl.bfloat16).eval()
        others = {quant: model_class.from_pretrained(folder, quant=quant).eval() for quant in QUANTS}
    is_picture = x.dtype == np.float32
    theirs = torch.from_numpy(x).bfloat16() if is_picture else torch.from_numpy(x)
    own = tl.from_numpy(x)
    in_half = own.to(tl.bfloat16) if is_picture else own
    works: dict[str, Work] = {"bfloat16": lambda: half(in_half)}
    works |= {quant: lambda model=model: model(own) for quant, model in others.items()}
    return name, lambda: reference(theirs), works
