"""docs/kernels.md: its code runs without a GPU, and its kernels compile and agree with the reference."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from support.card import FLOATS, PRECISION, Card, round_to
from support.guides import program
from support.paths import ROOT

import tallow as tl
from tallow.dtypes import dtype
from tallow.errors import KernelCompileError
from tallow.kernels import table

GUIDE = ROOT / "docs" / "kernels.md"


@pytest.fixture
def ops(card: Card, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run the guide's program on the device; yield what it defines, and remove it after the test."""
    monkeypatch.setattr("tallow.cuda.device_count", lambda: 1)
    monkeypatch.setattr(table, "KERNELS", dict(table.KERNELS))
    monkeypatch.setattr("tallow.ops.table.OPS", dict(tl.ops.table.OPS))
    monkeypatch.setattr(table, "_candidates", {})
    path = tmp_path / "guide.py"
    path.write_text(program(GUIDE), encoding="utf-8")
    runpy.run_path(str(path))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_guides_kernels(card: Card, ops: None, dtype: dtype) -> None:
    rng = np.random.default_rng(0)
    x, g = round_to(rng.standard_normal(300), dtype), round_to(rng.standard_normal(300), FLOATS[0])
    s = 1 / (1 + np.exp(-1.702 * x))
    y = card.run("quick_gelu", card.put(x, dtype))
    np.testing.assert_allclose(card.get(y), x * s, rtol=PRECISION[dtype], atol=1e-6)
    dx = card.run("quick_gelu_backward", card.put(g), card.put(x, dtype))
    np.testing.assert_allclose(card.get(dx), g * s * (1 + 1.702 * x * (1 - s)), rtol=2e-5, atol=1e-6)


def test_compile_kernel_takes_tensors_numbers_and_files(cuda: str, tmp_path: Path) -> None:
    path = tmp_path / "axpy.cu"
    path.write_text(
        'extern "C" __global__ void axpy(const float* x, float* y, float a, const float* none, long long size) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < size && !none) y[i] += a * x[i] + OFFSET;\n}\n"
    )
    axpy = tl.cuda.compile_kernel(path, "axpy", options=["-DOFFSET=3"])
    x, y = tl.arange(40.0, device=cuda), tl.ones(40, device=cuda)
    axpy((2,), (32,), (x, y, 0.5, None, 40))
    assert tl.equal(y.cpu(), tl.arange(40.0) * 0.5 + 4)


def test_compile_errors_name_the_line(cuda: str) -> None:
    with pytest.raises(KernelCompileError, match=r"(?s)broken.*undeclared_name"):
        tl.cuda.compile_kernel('extern "C" __global__ void broken() { undeclared_name(); }', "broken")


def test_a_kernel_that_is_not_in_its_source(cuda: str) -> None:
    with pytest.raises(KernelCompileError, match="missing"):
        tl.cuda.compile_kernel('extern "C" __global__ void there() {}', "missing")
