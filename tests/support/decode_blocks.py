"""The arrays of a decode block, and the block in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.quantized_blocks import random_matrix
from tallow import kernels
from tallow.kernels import library

Array = np.ndarray[Any, Any]

D, H, G, K, F, S = 24, 6, 2, 4, 37, 9
LIBRARY = kernels.info()
BACKENDS = [
    "array",
    pytest.param(
        library.BACKEND, marks=pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
    ),
]


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


def additions(seed: int) -> dict[str, Array]:
    """The biases of Qwen2 and the norms of Qwen3."""
    rng = np.random.default_rng(seed)
    sizes = {"query_bias": H * K, "key_bias": G * K, "value_bias": G * K, "query_norm": K, "key_norm": K}
    return {name: rng.uniform(0.5, 1.5, size).astype(np.float32) for name, size in sizes.items()}


class Reference:
    """The block in float64, with its own cache, in the simplest form."""

    def __init__(self, a: dict[str, Array], dtype: str, interleaved: bool, eps: float) -> None:
        widen = STORAGE[dtype][1]
        matrices = ("query", "key", "value", "output", "gate", "up", "down")
        self.w = {n: (widen(x) if n in matrices else x).astype(np.float64) for n, x in a.items()}
        self.interleaved, self.eps = interleaved, eps
        self.keys: list[Array] = []
        self.values: list[Array] = []

    def norm(self, x: Array, weight: str) -> Array:
        return x / np.sqrt(np.mean(x**2) + self.eps) * self.w[weight]

    def heads(self, name: str, n: Array) -> Array:
        y = self.w[name] @ n
        if f"{name}_bias" in self.w:
            y = y + self.w[f"{name}_bias"]
        y = y.reshape(-1, K)
        return np.stack([self.norm(head, f"{name}_norm") for head in y]) if f"{name}_norm" in self.w else y

    def rope(self, x: Array, position: int) -> Array:
        x = x.copy()
        for i in range(K // 2):
            p, q = (2 * i, 2 * i + 1) if self.interleaved else (i, i + K // 2)
            rotated = (x[:, p] + 1j * x[:, q]) * (self.w["cos"][position, i] + 1j * self.w["sin"][position, i])
            x[:, p], x[:, q] = rotated.real, rotated.imag
        return x

    def __call__(self, x: Array, position: int) -> Array:
        x = x.astype(np.float64).ravel()
        n = self.norm(x, "attention_norm")
        query = self.rope(self.heads("query", n), position)
        self.keys.append(self.rope(self.heads("key", n), position))
        self.values.append(self.heads("value", n))
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


def quantized_arrays(formats: tuple[str, ...]) -> dict[str, Any]:
    """A wider block, whose matrices are of these formats or float32, in turn."""
    rng = np.random.default_rng(8)
    d, h, g, k, f = 256, 8, 2, 32, 512
    shapes = {"query": (h * k, d), "key": (g * k, d), "value": (g * k, d), "output": (d, h * k)}
    shapes |= {"gate": (f, d), "up": (f, d), "down": (d, f)}
    a: dict[str, Any] = {name: np.ones(d, np.float32) for name in ("attention_norm", "mlp_norm")}
    for i, (name, shape) in enumerate(shapes.items()):
        kind = formats[i % len(formats)]
        matrix = random_matrix("Q8_0" if kind == "float32" else kind, *shape, rng)
        matrix = random_matrix(matrix.format, *shape, rng, scale=0.05 / abs(matrix.widen()).mean())
        a[name] = matrix.widen() if kind == "float32" else matrix
    angles = np.outer(np.arange(S), 0.7 ** np.arange(k // 2))
    a |= {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    return a | {name: np.zeros((1, g, S, k), np.float32) for name in ("key_cache", "value_cache")}
