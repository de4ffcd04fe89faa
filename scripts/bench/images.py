"""ViT-base with random weights, from pixels to logits. Compares tallow, in float32 and int8, with transformers.

Claims, natively, with one thread: at least the speed of transformers on PyTorch with SDPA.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np

from bench import turns
from bench.report import Row

NAME = "images"
BATCHES = (1, 8)
LIBRARIES = {"tallow": "tallow", "int8": "tallow", "transformers": "torch"}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    rows: list[Row] = []
    with ExitStack() as stack:
        workers = [
            stack.enter_context(turns.worker(module, 1, f"bench.images.{name}")) for name, module in LIBRARIES.items()
        ]
        for batch in BATCHES:
            costs = turns.in_turn(workers, 1, options["repeats"], batch)
            row: Row = {"images": batch}
            row |= {name: cost.best_s * 1e3 for name, cost in zip(LIBRARIES, costs, strict=True)}
            rows.append(row | {"of transformers": costs[-1].best_s / costs[0].best_s})
    notes = ["milliseconds of processor time, one thread; the best turn", turns.load_note()]
    return {"rows": rows, "notes": notes}


# ------------------------------------------------------------------------------------------------------ in the workers


def tallow(quant: str | None = None) -> Callable[[int], Any]:
    import tallow as tl
    from tallow.models import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(ViTConfig()).eval()
    if quant is not None:
        model.quantize(quant)

    def work(batch: int) -> Any:
        with tl.no_grad():
            return model(tl.tensor(_pixels(batch))).numpy()

    return work


def int8() -> Callable[[int], Any]:
    return tallow("int8")


def transformers() -> Callable[[int], Any]:
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification._from_config(ViTConfig(), attn_implementation="sdpa").eval()

    def work(batch: int) -> Any:
        with torch.no_grad():
            return model(torch.from_numpy(_pixels(batch))).logits.numpy()

    return work


@cache
def _pixels(batch: int) -> Any:
    return np.random.default_rng(0).standard_normal((batch, 3, 224, 224)).astype(np.float32)
