"""One token through one block: the compiled kernel and the array code against the formulas in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tallow import kernels
from tallow.errors import ArgumentError, DtypeError, ShapeError, TallowError
from tallow.kernels import library
from tallow.kernels.decode_block import DecodeBlock

Array = np.ndarray[Any, Any]

D, H, G, K, F, S = 24, 6, 2, 4, 37, 9
LIBRARY = kernels.info()
BACKENDS = [
    "array",
    pytest.param(
        library.BACKEND, marks=pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
    ),
]


def run(backend: str, x: Array, block: DecodeBlock, position: int) -> Array:
    """The kernel of one backend, whatever the table would choose."""
    return kernels.KERNELS["decode_block", backend].fn(x, block, position)


def to_bfloat16(x: Array) -> Array:
    return (x.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


STORAGE: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "float32": (lambda w: w.astype(np.float32), lambda w: w),
    "float16": (lambda w: w.astype(np.float16), lambda w: w.astype(np.float32)),
    "bfloat16": (to_bfloat16, from_bfloat16),
}


def arrays(seed: int, dtype: str = "float32") -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    narrow, _ = STORAGE[dtype]

    def matrix(rows: int, columns: int) -> Array:
        return narrow(rng.standard_normal((rows, columns)) / np.sqrt(columns))

    def vector() -> Array:
        return rng.uniform(0.5, 1.5, D).astype(np.float32)

    angles = np.outer(np.arange(S + 3), 0.7 ** np.arange(K // 2))
    unwritten = np.full((1, G, S, K), np.nan, np.float32)
    return {
        "attention_norm": vector(), "query": matrix(H * K, D), "key": matrix(G * K, D), "value": matrix(G * K, D),
        "output": matrix(D, H * K), "mlp_norm": vector(), "gate": matrix(F, D), "up": matrix(F, D),
        "down": matrix(D, F), "cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32),
        "key_cache": unwritten, "value_cache": unwritten.copy(),
    }  # fmt: skip


class Reference:
    """The block in float64, with a cache of its own, written without a thought of speed."""

    def __init__(self, a: dict[str, Array], dtype: str, interleaved: bool, eps: float) -> None:
        widen = STORAGE[dtype][1]
        matrices = ("query", "key", "value", "output", "gate", "up", "down")
        self.w = {n: (widen(x) if n in matrices else x).astype(np.float64) for n, x in a.items()}
        self.interleaved, self.eps = interleaved, eps
        self.keys: list[Array] = []
        self.values: list[Array] = []

    def norm(self, x: Array, weight: str) -> Array:
        return x / np.sqrt(np.mean(x**2) + self.eps) * self.w[weight]

    def rope(self, x: Array, position: int) -> Array:
        x = x.reshape(-1, K).copy()
        for i in range(K // 2):
            p, q = (2 * i, 2 * i + 1) if self.interleaved else (i, i + K // 2)
            turned = (x[:, p] + 1j * x[:, q]) * (self.w["cos"][position, i] + 1j * self.w["sin"][position, i])
            x[:, p], x[:, q] = turned.real, turned.imag
        return x

    def __call__(self, x: Array, position: int) -> Array:
        x = x.astype(np.float64).ravel()
        n = self.norm(x, "attention_norm")
        query = self.rope(self.w["query"] @ n, position)
        self.keys.append(self.rope(self.w["key"] @ n, position))
        self.values.append((self.w["value"] @ n).reshape(G, K))
        mixed = np.empty((H, K))
        for h in range(H):
            g = h // (H // G)
            scores = np.array([key[g] @ query[h] for key in self.keys]) / np.sqrt(K)
            weights = np.exp(scores - scores.max())
            mixed[h] = sum(w * value[g] for w, value in zip(weights / weights.sum(), self.values, strict=True))
        h_ = x + self.w["output"] @ mixed.ravel()
        m = self.norm(h_, "mlp_norm")
        gate = self.w["gate"] @ m
        return h_ + self.w["down"] @ (gate / (1 + np.exp(-gate)) * (self.w["up"] @ m))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("interleaved", [True, False])
def test_a_whole_context(backend: str, dtype: str, interleaved: bool) -> None:
    a = arrays(3, dtype)
    block, reference = DecodeBlock(**a, eps=1e-5, interleaved=interleaved), Reference(a, dtype, interleaved, 1e-5)
    rng = np.random.default_rng(5)
    for position in range(S):
        x = rng.standard_normal((1, 1, D)).astype(np.float32)
        before = x.copy()
        y = run(backend, x, block, position)
        assert y.shape == x.shape
        assert y.dtype == np.float32
        np.testing.assert_array_equal(x, before)
        np.testing.assert_allclose(y.ravel(), reference(x, position), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(a["key_cache"][0], np.stack(reference.keys, axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(a["value_cache"][0], np.stack(reference.values, axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_the_row_of_the_position_is_written(backend: str) -> None:
    a = arrays(1)
    a["key_cache"][...] = a["value_cache"][...] = 3
    block = DecodeBlock(**a, eps=1e-5, interleaved=False)
    run(backend, np.ones(D, np.float32), block, 4)
    for cache in (a["key_cache"], a["value_cache"]):
        assert (np.delete(cache, 4, axis=2) == 3).all()
        assert (cache[:, :, 4] != 3).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_changed_in_place_are_used(backend: str) -> None:
    a = arrays(1)
    block = DecodeBlock(**a, eps=1e-5, interleaved=False)
    x = np.ones(D, np.float32)
    first = run(backend, x, block, 0)
    a["down"][...] = 0
    a["output"][...] = 0
    assert not np.array_equal(first, x)
    np.testing.assert_array_equal(run(backend, x, block, 0), x)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("position", [-1, S])
def test_a_position_outside_the_cache_is_an_error(backend: str, position: int) -> None:
    block = DecodeBlock(**arrays(1), eps=1e-5, interleaved=False)
    with pytest.raises(ArgumentError, match=f"position {position} lies outside the cache of {S} positions"):
        run(backend, np.ones(D, np.float32), block, position)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_token_of_another_width_is_an_error(backend: str) -> None:
    block = DecodeBlock(**arrays(1), eps=1e-5, interleaved=False)
    with pytest.raises(ShapeError, match="expected one token of width 24"):
        run(backend, np.ones((2, D), np.float32), block, 0)


@pytest.mark.parametrize("name", arrays(1))
def test_an_array_that_does_not_fit_is_named(name: str) -> None:
    a = arrays(1)
    a[name] = np.zeros([n + 3 for n in a[name].shape], np.float32)
    with pytest.raises((ShapeError, DtypeError)):
        DecodeBlock(**a, eps=1e-5, interleaved=False)
    a = arrays(1)
    a[name] = a[name].astype(np.float64)
    with pytest.raises(DtypeError):
        DecodeBlock(**a, eps=1e-5, interleaved=False)


def test_holds_tells_the_same_arrays_from_equal_ones() -> None:
    a = arrays(1)
    block = DecodeBlock(**a, eps=1e-5, interleaved=False)
    assert block.holds(tuple(a.values()))
    assert not block.holds((*tuple(a.values())[:-1], a["value_cache"].copy()))


@pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
def test_what_c_cannot_read_is_left_to_the_array_code() -> None:
    x = np.ones(D, np.float32)
    for name in ("query", "key_cache"):
        a = arrays(1)
        a[name] = np.asfortranarray(a[name])
        block = DecodeBlock(**a, eps=1e-5, interleaved=False)
        with kernels.require("array"):
            expected = kernels.run("decode_block", x, DecodeBlock(**a, eps=1e-5, interleaved=False), 0)
        np.testing.assert_array_equal(kernels.run("decode_block", x, block, 0), expected)
        with pytest.raises(TallowError):
            run(library.BACKEND, x, block, 0)
