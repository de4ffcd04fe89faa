"""Dropout on a device: Philox's output, the dropped elements, and reproducibility by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import PRECISION, Card, round_to

import tallow as tl
from tallow import kernels
from tallow.dtypes import bfloat16, dtype, float32
from tallow.nn import functional as F
from tallow.ops.philox import philox

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
# Counter, key, output: `philox4x32 10` of Random123's kat_vectors.
KNOWN = [
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (*PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
KERNEL = """
#include "philox.cuh"
extern "C" __global__ void words(const unsigned* counter, unsigned* words, long long key) {
    Words4 w = philox({{counter[0], counter[1], counter[2], counter[3]}}, (unsigned long long)key);
    for (int i = 0; i < 4; i++) words[i] = w.at[i];
}
"""


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox(card: Card, counter: Any, key: Any, words: Any) -> None:
    number = key[0] | key[1] << 32
    result = philox(tuple(np.array([c], np.uint64) for c in counter), number)  # type: ignore[arg-type]
    assert tuple(int(w[0]) for w in result) == words
    kernel = card.backend.compile_kernel(KERNEL, "words")
    counters, out = card.put(np.array(counter, np.uint32)), card.put(np.zeros(4, np.uint32))
    kernel((1,), (1,), (counters, out, np.uint64(number).astype(np.int64)))
    assert tuple(card.get(out).tolist()) == words


@pytest.mark.parametrize("shape", [(1,), (3, 5), (4, 1030)])
def test_the_kernel_keeps_the_same_elements_as_the_array_code(card: Card, shape: tuple[int, ...]) -> None:
    for first, key in ((0, 0), (2**32 - 3, 2**64 - 5)):
        kept = card.get(card.run("random_keep", card.put(np.zeros(1)), shape, 0.3, key, first))
        with kernels.off():
            expected = kernels.run("random_keep", np.zeros(1), shape, 0.3, key, first)
        np.testing.assert_array_equal(kept, expected)


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_scaled_mask(card: Card, dtype: dtype) -> None:
    rng = np.random.default_rng(0)
    for shape in ((1,), (3, 1003)):
        x, keep = round_to(rng.standard_normal(shape), dtype), rng.random(shape) < 0.5
        y = card.run("scaled_mask", card.put(x, dtype), card.put(keep), 1.25)
        assert y.dtype == dtype.storage
        np.testing.assert_allclose(card.get(y), x * keep * 1.25, rtol=PRECISION[dtype])


def test_dropout_on_a_device_follows_the_seed(cuda: str) -> None:
    tl.manual_seed(1)
    x = tl.ones(100, 200, device=cuda)
    first, second = (F.dropout(x, 0.25) for _ in range(2))
    tl.manual_seed(1)
    again = F.dropout(x, 0.25)
    state = tl.get_rng_state()
    ahead = F.dropout(x, 0.25)
    tl.manual_seed(2)
    other = F.dropout(x, 0.25)
    tl.set_rng_state(state)
    assert tl.equal(again.cpu(), first.cpu())
    assert tl.equal(ahead.cpu(), second.cpu())
    assert tl.equal(F.dropout(x, 0.25).cpu(), second.cpu())
    assert not tl.equal(second.cpu(), first.cpu())
    assert not tl.equal(other.cpu(), first.cpu())
    kept = first.cpu().numpy()
    np.testing.assert_allclose(np.unique(kept), [0, 4 / 3], rtol=1e-6)
    assert abs((kept > 0).mean() - 0.75) < 5 * (0.25 * 0.75 / kept.size) ** 0.5


def test_gradients_pass_where_elements_were_kept(cuda: str) -> None:
    x = tl.ones(40, 30, device=cuda, requires_grad=True)
    y = F.dropout(x, 0.5)
    y.sum().backward()
    assert tl.equal(x.grad.cpu(), y.detach().cpu())
