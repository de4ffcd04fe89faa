"""Products of a matrix (2048, 2048) of quantised weights and a vector, in GOP/s, on one thread.

GOP/s: billions of operations a second; a multiplication and an addition are two. Each call rounds the vector to int8.

Goal, not reached yet: in Chromium Q8_0 reaches 32 GOP/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from bench.report import Row
from bench.timing import in_turn
from tallow.kernels.quantized.block_matrix import BlockMatrix

NAME = "products"
SIZE = 2048
FORMATS = ("Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q5_0", "Q4_0")


def measure(options: dict[str, Any]) -> dict[str, Any]:
    tl.set_num_threads(1)
    rng = np.random.default_rng(0)
    weights, x = (rng.standard_normal((n, SIZE), dtype=np.float32) for n in (SIZE, 1))
    matrices = [BlockMatrix.quantized(weights, name) for name in FORMATS]
    works = [lambda m=m: m.product(x) for m in matrices]
    rows: list[Row] = []
    for name, timing in zip(FORMATS, in_turn(1.0, options["repeats"], *works), strict=True):
        best, median = (2e-9 * SIZE**2 / seconds for seconds in timing)
        rows.append({"weights": name, "GOP/s": best, "median": median, "ms": timing.best_s * 1e3})
    return {"rows": rows, "notes": ["best and median; the formats alternate"]}
