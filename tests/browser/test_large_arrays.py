"""Kernels on an array of 600 MB in the tab, on as many threads as there can be: no place in it overflows 32 bits.

Each result takes as much memory again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from support import builds
from tests.browser.conftest import serving
from tests.browser.consoles import Console

THREADS = 16
# NumPy's results are computed in parts, so that they need no memory to speak of.
CODE = f"""
import numpy as np
import tallow as tl
from tallow import kernels

ROWS, COLUMNS, STEP = 12_500, 12_000, 500
tl.set_num_threads({THREADS})
values = np.linspace(-5, 5, ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
x = tl.from_numpy(values)
few = np.random.default_rng(0).standard_normal((COLUMNS, 8), dtype=np.float32)

def softmax(v):
    powers = np.exp(v - v.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)

def worst(result, expected):
    parts = (slice(row, row + STEP) for row in range(0, ROWS, STEP))
    found = ((result[part], expected(values[part].astype(np.float64))) for part in parts)
    return max(float(np.abs(one - other).max() / (np.abs(other).max() or 1)) for one, other in found)

print("MB:", values.nbytes / 1e6, "threads:", tl.get_num_threads())
with kernels.require("wasm"):
    print("mul", worst((x * x).numpy(), lambda v: v * v) < 1e-6)
    print("relu", worst(tl.relu(x).numpy(), lambda v: np.maximum(v, 0)) < 1e-6)
    print("softmax", worst(tl.softmax(x, dim=1).numpy(), softmax) < 1e-5)
    print("matmul", worst((x @ tl.from_numpy(few)).numpy(), lambda v: v @ few.astype(np.float64)) < 1e-5)
"""


@pytest.fixture(scope="module")
def threaded_site(revisited_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site as on a computer with sixteen processors."""
    folder = builds.linked_copy(revisited_dir, tmp_path_factory.mktemp("threaded") / "site")
    builds.change(folder / "web/worker.js", lambda it: it.replace("navigator.hardwareConcurrency", str(THREADS)))
    with serving(folder) as server:
        yield server.url


def test_large_arrays(page: Page, threaded_site: str) -> None:
    output = Console(page).open(threaded_site).run(CODE)
    assert f"MB: 600.0 threads: {THREADS}" in output
    for name in ("mul", "relu", "softmax", "matmul"):
        assert f"{name} True" in output, output
