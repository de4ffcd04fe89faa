"""Chains of elementwise ops, compiled: tallow compared with NumPy's operations one after the other.

Claim: five ops on 65,536 floats take half of NumPy's time natively, and a fifth in a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from bench.timing import per_call

NAME = "chains"
SIZES = (4096, 65_536, 1 << 20)
ONE = np.float32(1)


def products(m: Any, x: Any, y: Any, z: Any) -> Any:
    """max(x · y + z, 0) · x - y"""
    return m.maximum(x * y + z, m.zero) * x - y


def functions(m: Any, x: Any, y: Any, z: Any) -> Any:
    """tanh(sigmoid(x · y) + z) · x"""
    return m.tanh(m.sigmoid(x * y) + z) * x


class OfNumPy:
    zero = np.float32(0)
    maximum, tanh = np.maximum, np.tanh

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return ONE / (ONE + np.exp(-x))


class OfTallow:
    zero = tl.zeros(())
    maximum, tanh, sigmoid = staticmethod(tl.maximum), staticmethod(tl.tanh), staticmethod(tl.sigmoid)


def measure(options: dict[str, Any]) -> dict[str, Any]:
    rows = []
    rng = np.random.default_rng(0)
    for chain in (products, functions):
        for size in SIZES:
            arrays = [rng.standard_normal(size, dtype=np.float32) for _ in range(3)]
            calls = max(1, (1 << 21) // size)
            seconds = [t.median_s for t in per_call(3 * options["repeats"], calls, *_callers(chain, arrays))]
            rows.append({
                "chain": chain.__doc__, "elements": size, "NumPy": seconds[0] * 1e6, "eager": seconds[1] * 1e6,
                "compiled": seconds[2] * 1e6, "times": seconds[0] / seconds[2],
            })  # fmt: skip
    return {"rows": rows, "notes": ["µs per call, medians of turns; times: NumPy / compiled"]}


def _callers(chain: Callable[..., Any], arrays: list[Any]) -> tuple[Callable[[], Any], ...]:
    """Return the chain of NumPy, of tallow, and compiled."""
    tensors = [tl.from_numpy(x) for x in arrays]
    compiled = tl.compile(lambda x, y, z: chain(OfTallow, x, y, z), fullgraph=True)

    def run(function: Callable[..., Any]) -> Callable[[], Any]:
        @tl.no_grad()
        def call() -> Any:
            return function(*tensors)

        return call

    return (
        lambda: chain(OfNumPy, *arrays), run(lambda x, y, z: chain(OfTallow, x, y, z)), run(compiled)
    )  # fmt: skip
