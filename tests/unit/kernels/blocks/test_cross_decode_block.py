"""One token through one block with cross-attention: the compiled kernel and the array code against float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import POISON, GuardedArray
from support.quantized_blocks import random_matrix, rounded

from tallow import kernels
from tallow.errors import ArgumentError, DtypeError, KernelUnavailable, ShapeError
from tallow.kernels import library
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.cross_decode_block import NORMS, PARTS, CrossDecodeBlock
from tallow.kernels.quantized.block_matrix import BlockMatrix

Array = np.ndarray[Any, Any]

D, H, F, S, N = 24, 6, 37, 7, 11
K = D // H
EPS = 1e-5
MATRICES = tuple(name for name in PARTS if name not in NORMS)
LIBRARY = kernels.info()
needs_library = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
BACKENDS = ["array", pytest.param(library.BACKEND, marks=needs_library)]
NARROW: dict[str, Callable[[Array], Array]] = {
    "float32": lambda w: w,
    "float16": lambda w: w.astype(np.float16),
    "bfloat16": lambda w: (w.view(np.uint32) >> np.uint32(16)).astype(np.uint16),
}
WIDEN: dict[str, Callable[[Array], Array]] = {
    "float32": lambda w: w,
    "float16": lambda w: w.astype(np.float32),
    "bfloat16": lambda bits: (bits.astype(np.uint32) << np.uint32(16)).view(np.float32),
}


def run(backend: str, *args: Any) -> Array:
    """Run the kernel of one backend, whatever the table would choose."""
    return kernels.KERNELS["cross_decode_block", backend].fn(*args)


def weights(seed: int, dtype: str = "float32") -> dict[str, Affine]:
    """Return weights of all parts; the keys have no bias, as in Whisper."""
    rng = np.random.default_rng(seed)
    shapes = dict.fromkeys(PARTS, (D, D)) | dict.fromkeys(NORMS, (D,)) | {"up": (F, D), "down": (D, F)}
    parameters = {}
    for name, shape in shapes.items():
        bias = rng.standard_normal(shape[0]).astype(np.float32)
        matrix = (rng.standard_normal(shape) / np.sqrt(D)).astype(np.float32)
        narrowed = matrix + np.float32(1) if name in NORMS else NARROW[dtype](matrix)
        parameters[name] = Affine(narrowed, None if name == "key" else bias)
    return parameters


def block_of(parts: dict[str, Affine]) -> CrossDecodeBlock:
    return CrossDecodeBlock(**parts, heads=H, eps=EPS)


def caches(batch: int, positions: int = S) -> tuple[Array, Array]:
    """Memory that was not written must not be read."""
    return np.full((batch, H, positions, K), np.nan, np.float32), np.full((batch, H, positions, K), np.nan, np.float32)


def sounds(count: int, seed: int = 9) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    keys, values = rng.standard_normal((2, count, H, N, K)).astype(np.float32)
    return keys, values


class Reference:
    """The block for one text in float64, with its own cache, in the simplest form."""

    def __init__(self, parts: dict[str, Affine], dtype: str, cross_keys: Array, cross_values: Array) -> None:
        self.parts = {
            name: (
                (weight if name in NORMS else WIDEN[dtype](weight)).astype(np.float64),
                np.float64(0) if bias is None else bias.astype(np.float64),
            )
            for name, (weight, bias) in parts.items()
        }
        self.cross = cross_keys.astype(np.float64), cross_values.astype(np.float64)
        self.keys: list[Array] = []
        self.values: list[Array] = []

    def norm(self, x: Array, name: str) -> Array:
        weight, bias = self.parts[name]
        return (x - x.mean()) / np.sqrt(x.var() + EPS) * weight + bias

    def times(self, x: Array, name: str) -> Array:
        weight, bias = self.parts[name]
        return weight @ x + bias

    def attend(self, query: Array, keys: Any, values: Any) -> Array:
        """Return keys and values of each head: (H, positions, K)."""
        mixed = []
        for q, k, v in zip(query.reshape(len(keys), -1), keys, values, strict=True):
            scores = k @ q / np.sqrt(len(q))
            weights = np.exp(scores - scores.max())
            mixed.append(weights / weights.sum() @ v)
        return np.concatenate(mixed)

    def __call__(self, x: Array) -> Array:
        n = self.norm(x.astype(np.float64), "self_norm")
        heads = len(self.cross[0])
        self.keys.append(self.times(n, "key").reshape(heads, -1))
        self.values.append(self.times(n, "value").reshape(heads, -1))
        own = np.stack(self.keys, 1), np.stack(self.values, 1)
        h = x + self.times(self.attend(self.times(n, "query"), *own), "output")
        m = self.norm(h, "cross_norm")
        c = h + self.times(self.attend(self.times(m, "cross_query"), *self.cross), "cross_output")
        inner = self.times(self.norm(c, "mlp_norm"), "up")
        return c + self.times(np.array([u * (1 + math.erf(u / math.sqrt(2))) / 2 for u in inner]), "down")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("batch", "count"), [(1, 1), (3, 1), (2, 2), (6, 3)], ids=str)
def test_all_positions(backend: str, dtype: str, batch: int, count: int) -> None:
    parts = weights(3, dtype)
    cross_keys, cross_values = sounds(count)
    block, (keys, values) = block_of(parts), caches(batch)
    shared = batch // count
    references = [Reference(parts, dtype, cross_keys[i // shared], cross_values[i // shared]) for i in range(batch)]
    rng = np.random.default_rng(5)
    for position in range(S):
        x = rng.standard_normal((batch, D)).astype(np.float32)
        before = x.copy()
        y = run(backend, x, block, keys, values, cross_keys, cross_values, position)
        expected = np.stack([reference(row) for reference, row in zip(references, x, strict=True)])
        assert y.dtype == np.float32
        np.testing.assert_array_equal(x, before)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    for cache, name in ((keys, "keys"), (values, "values")):
        expected = np.stack([np.stack(getattr(reference, name), 1) for reference in references])
        np.testing.assert_allclose(cache, expected, rtol=1e-5, atol=1e-5)


class RoundedReference(Reference):
    """The block with quantised matrices, which are multiplied by rows of int8 if a compiled kernel computes them."""

    def __init__(self, parts: dict[str, Affine], cross_keys: Array, cross_values: Array, is_rounded: bool) -> None:
        widened = {
            name: Affine(weight.widen() if isinstance(weight, BlockMatrix) else weight, bias)
            for name, (weight, bias) in parts.items()
        }
        super().__init__(widened, "float32", cross_keys, cross_values)
        self.is_rounded = is_rounded
        self.quantised = {name for name, (weight, _) in parts.items() if isinstance(weight, BlockMatrix)}

    def times(self, x: Array, name: str) -> Array:
        if self.is_rounded and name in self.quantised:
            codes, scales = rounded(x.astype(np.float32)[None])
            x = (codes * scales.astype(np.float64)).reshape(-1)
        return super().times(x, name)


def quantised_parts(format: str, names: Sequence[str]) -> dict[str, Affine]:
    width, hidden = 2 * 32, 3 * 32
    rng = np.random.default_rng(6)
    shapes = {"up": (hidden, width), "down": (width, hidden)}
    parts = {}
    for name in PARTS:
        rows, columns = shapes.get(name, (width, width))
        bias = None if name == "key" else rng.standard_normal(rows).astype(np.float32)
        weight: Any = (rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        if name in NORMS:
            weight = 1 + weight[0]
        elif name in names:
            largest = 127 if format == "Q8_0" else 16
            weight = random_matrix(format, rows, columns, rng, scale=2 / largest / math.sqrt(columns))
        parts[name] = Affine(weight, bias)
    return parts


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("format", ["Q8_0", "Q5_0"])
@pytest.mark.parametrize("names", [MATRICES, ("query", "up"), ("value", "cross_query", "cross_output", "down")])
def test_quantised_matrices(backend: str, format: str, names: Sequence[str]) -> None:
    """An element near the middle between two codes may get either, which changes results by about 1e-3. Few do."""
    parts = quantised_parts(format, names)
    rng, heads = np.random.default_rng(7), 4
    block = CrossDecodeBlock(**parts, heads=heads, eps=EPS)
    cross_keys, cross_values = rng.standard_normal((2, 1, heads, N, 16)).astype(np.float32)
    keys, values = np.full((2, 3, heads, S, 16), np.nan, np.float32)
    references = [RoundedReference(parts, cross_keys[0], cross_values[0], backend != "array") for _ in range(3)]
    differences = []
    for position in range(S):
        x = rng.standard_normal((3, 64)).astype(np.float32)
        y = run(backend, x, block, keys, values, cross_keys, cross_values, position)
        expected = np.stack([reference(row) for reference, row in zip(references, x, strict=True)])
        differences.append(abs(y - expected))
    assert np.max(differences) < (1e-4 if backend == "array" else 0.05)
    assert np.quantile(differences, 0.7) < 2e-5


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_the_position_is_written(backend: str) -> None:
    keys, values = GuardedArray(2, H, S, K, shift=1), GuardedArray(2, H, S, K, shift=3)
    for cache in (keys, values):
        cache.array[:, :, :4] = 1
    x = np.ones((2, D), np.float32)
    run(backend, x, block_of(weights(1)), keys.array, values.array, *sounds(1), 4)
    for cache in (keys, values):
        cache.check_outside()
        assert (cache.array[:, :, :4] == 1).all()
        assert (cache.array[:, :, 5:] == POISON).all()
        assert not np.isin(cache.array[:, :, 4], (1, POISON)).any()


@needs_library
@pytest.mark.parametrize(("batch", "count"), [(5, 1), (4, 2)], ids=str)
@pytest.mark.parametrize("positions", [S, 40], ids=["more sound", "more text"])
def test_scratch_is_long_enough(batch: int, count: int, positions: int, poisoned_empty: list[GuardedArray]) -> None:
    keys, values = caches(batch, positions)
    keys[:, :, :-1] = values[:, :, :-1] = 0.5
    x = np.random.default_rng(0).standard_normal((batch, D)).astype(np.float32)
    y = run(library.BACKEND, x, block_of(weights(1)), keys, values, *sounds(count), positions - 1)
    assert np.isfinite(y).all()
    assert poisoned_empty
    for memory in poisoned_empty:
        memory.check_outside()


@needs_library
@pytest.mark.threads
@pytest.mark.parametrize("format", ["float32", "float16", "Q8_0"])
@pytest.mark.parametrize(("batch", "count"), [(1, 1), (2, 1), (5, 1), (6, 3), (20, 2)], ids=str)
def test_any_number_of_threads_gives_the_same(
    batch: int, count: int, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = weights(1, format) if format in NARROW else quantised_parts(format, MATRICES)
    width = parts["query"].weight.shape[1]
    block, k = CrossDecodeBlock(**parts, heads=4, eps=EPS), width // 4
    rng = np.random.default_rng(0)
    x, cross = rng.standard_normal((batch, width)), rng.standard_normal((2, count, 4, N, k))
    results = []
    monkeypatch.setattr("tallow.kernels.bindings.threads.WORTH_A_THREAD", 1)
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr("tallow.kernels.bindings.threads.thread_count", lambda threads=threads: threads)
        cache = np.zeros((2, batch, 4, S, k), np.float32)
        y = [
            run(library.BACKEND, x.astype(np.float32), block, *cache, *cross.astype(np.float32), position)
            for position in range(2)
        ]
        results.append([*y, cache])
    for others in results[1:]:
        for got, expected in zip(others, results[0], strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("position", [-1, S])
def test_a_position_outside_the_cache_is_an_error(backend: str, position: int) -> None:
    x = np.ones((1, D), np.float32)
    with pytest.raises(ArgumentError, match=f"position {position} lies outside the cache of {S} positions"):
        run(backend, x, block_of(weights(1)), *caches(1), *sounds(1), position)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("which", range(5), ids=["x", "keys", "values", "cross keys", "cross values"])
def test_arrays_that_do_not_fit_are_an_error(backend: str, which: int) -> None:
    x, memory = np.ones((4, D), np.float32), [*caches(4), *sounds(2)]
    arguments = [x, *memory]
    for axis in range(arguments[which].ndim):
        if which == 1 and axis == 2:
            continue  # then the values do not fit the keys
        changed = list(arguments)
        changed[which] = np.repeat(arguments[which], 3, axis=axis)[(slice(None),) * axis + (slice(1, None),)]
        with pytest.raises(ShapeError, match="cross_decode_block: x"):
            run(backend, changed[0], block_of(weights(1)), *changed[1:], 0)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_does_not_fit_is_named(name: str) -> None:
    parts = weights(1)
    weight, bias = parts[name]
    for wrong in (Affine(np.concatenate([weight, weight]), bias), Affine(weight, np.ones(D + F, np.float32))):
        with pytest.raises(ShapeError):
            block_of(parts | {name: wrong})
    for wrong in (Affine(weight.astype(np.float64), bias), Affine(weight, np.ones(len(weight)))):
        with pytest.raises(DtypeError):
            block_of(parts | {name: wrong})


@needs_library
def test_arrays_that_c_cannot_read_use_the_array_code() -> None:
    x, parts = np.ones((1, D), np.float32), weights(1)
    parts["up"] = Affine(np.asfortranarray(parts["up"].weight), parts["up"].bias)
    strided = [np.asfortranarray(cache) for cache in caches(1)]
    for block, cache in ((block_of(parts), caches(1)), (block_of(weights(1)), strided)):
        expected = run("array", x, block, *cache, *sounds(1), 0)
        np.testing.assert_array_equal(kernels.run("cross_decode_block", x, block, *cache, *sounds(1), 0), expected)
        with pytest.raises(KernelUnavailable, match="requirements"):
            run(library.BACKEND, x, block, *cache, *sounds(1), 0)
