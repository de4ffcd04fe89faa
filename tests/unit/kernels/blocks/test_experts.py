"""The kernel "experts" and blocks that call a module, compared with the formula in float64."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from support.decode_blocks import BACKENDS, LIBRARY, STORAGE, D, G, H, K, Reference, additions, arrays
from support.quantized_blocks import random_matrix

import tallow.ops.quantized_linear  # noqa: F401 - array code of a kernel that experts call
from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels.blocks.decode_block import DecodeBlock
from tallow.kernels.blocks.expert_block import ExpertBlock
from tallow.kernels.quantized.block_matrix import BlockMatrix

RNG = np.random.default_rng(5)
WIDTH, HIDDEN = 256, 512


def using(backend: str, name: str = "decode_block") -> AbstractContextManager[None]:
    """Return a context in which a backend computes a kernel; skip the test where it has none."""
    if backend == "array":
        return kernels.off()
    if not LIBRARY.enabled:
        pytest.skip("kernels are switched off")
    if name not in LIBRARY.kernels:
        pytest.skip("the libraries for WASM lack it")
    return kernels.require(backend)


def matrices(kind: str) -> list[Any]:
    shapes = (HIDDEN, WIDTH), (HIDDEN, WIDTH), (WIDTH, HIDDEN)
    if kind in STORAGE:
        return [STORAGE[kind][0](RNG.standard_normal(shape) / 16) for shape in shapes]
    found = [random_matrix(kind, *shape, RNG) for shape in shapes]
    return [random_matrix(kind, *m.shape, RNG, scale=0.05 / abs(m.widen()).mean()) for m in found]


def expected(x: Any, experts: list[list[Any]], weights: Any) -> Any:
    total = np.zeros(WIDTH)
    for expert, weight in zip(experts, weights, strict=True):
        gate, up, down = (_float64(matrix) for matrix in expert)
        hidden = gate @ x
        total += weight * (down @ (hidden / (1 + np.exp(-hidden)) * (up @ x)))
    return total


def _float64(matrix: Any) -> Any:
    if isinstance(matrix, BlockMatrix):
        return matrix.widen().astype(np.float64)
    return next(widen(matrix) for narrow, widen in STORAGE.values() if narrow(np.ones(1)).dtype == matrix.dtype) * 1.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [*STORAGE, "Q8_0", "Q4_K", "Q6_K", "Q4_0"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_weighted_sum(kind: str, backend: str, interleaved: bool) -> None:
    experts = [matrices(kind), matrices("Q8_0" if kind not in STORAGE else kind), matrices(kind)]
    x, weights = RNG.standard_normal(WIDTH).astype(np.float32), np.float32([0.5, 0.2, 0.25])
    wanted = expected(x, experts, weights)
    if interleaved and kind not in STORAGE:
        experts = [[kernels.run("arrange_blocks", m.blocks, m.format) for m in each] for each in experts]
    blocks = [ExpertBlock(*each) for each in experts]
    with using(backend, "experts"):
        y = kernels.run("experts", x, blocks, weights)
    error = np.abs(y - wanted).max() / np.abs(wanted).max()
    assert error < (1e-5 if kind in STORAGE or backend == "array" else 0.02)


@pytest.mark.parametrize("backend", BACKENDS)
def test_shapes(backend: str) -> None:
    gate, up, down = matrices("float32")
    with pytest.raises(ShapeError, match="ExpertBlock"):
        ExpertBlock(gate, up, down.T)
    blocks, x = [ExpertBlock(gate, up, down)], np.zeros(WIDTH, np.float32)
    with using(backend, "experts"):
        for bad in ((x[1:], blocks, np.ones(1, np.float32)), (x, blocks, np.ones(2, np.float32)), (x, [], x[:0])):
            with pytest.raises(ShapeError, match="experts: x"):
                kernels.run("experts", *bad)


@pytest.mark.parametrize("backend", BACKENDS)
def test_blocks_that_call_a_module(backend: str) -> None:
    """One row of the first text, and rows at places."""
    a, eps = arrays(3), 1e-5
    reference, of_rows = (Reference(a, "float32", False, eps) for _ in range(2))
    gate, up, down = (a[name] for name in ("gate", "up", "down"))

    def mlp(rows: Any) -> Any:
        hidden = rows @ gate.T
        return (hidden / (1 + np.exp(-hidden)) * (rows @ up.T)) @ down.T

    rest = {name: array for name, array in a.items() if name not in ("gate", "up", "down")}
    block = DecodeBlock(**rest, gate=None, up=None, down=None, mlp=mlp, eps=eps, interleaved=False)
    rows = RNG.standard_normal((4, D)).astype(np.float32)
    with using(backend):
        for position in range(2):
            y = kernels.run("decode_block", rows[position], block, position)
            np.testing.assert_allclose(y, reference(rows[position], position), atol=1e-5)
        places = np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 3, 0]])
        y = kernels.run("decode_block", rows, block, places)
    np.testing.assert_allclose(y, [of_rows(row, i) for i, row in enumerate(rows)], atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_norms_of_all_heads(backend: str) -> None:
    a = arrays(4) | additions(4)
    a |= {"query_norm": RNG.uniform(0.5, 1.5, H * K).astype(np.float32)}
    a |= {"key_norm": RNG.uniform(0.5, 1.5, G * K).astype(np.float32)}

    class OfAll(Reference):
        def heads(self, name: str, n: Any) -> Any:
            y = self.w[name] @ n + self.w[f"{name}_bias"]
            return (self.norm(y, f"{name}_norm") if f"{name}_norm" in self.w else y).reshape(-1, K)

    reference, block = OfAll(a, "float32", False, 1e-5), DecodeBlock(**a, eps=1e-5, interleaved=False)
    with using(backend):
        for position, row in enumerate(RNG.standard_normal((3, D)).astype(np.float32)):
            y = kernels.run("decode_block", row, block, position)
            np.testing.assert_allclose(y, reference(row, position), atol=1e-5)
