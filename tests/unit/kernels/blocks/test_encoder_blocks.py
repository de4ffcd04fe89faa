"""Texts through all blocks of an encoder: the compiled kernel and the array code against float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray
from support.quantized_blocks import random_matrix, rounded

from tallow import kernels
from tallow.errors import ArgumentError, DtypeError, KernelUnavailable, ShapeError
from tallow.kernels import library
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.encoder_block import ACTIVATIONS, NORMS, PARTS, EncoderBlock
from tallow.kernels.quantized.block_matrix import BlockMatrix

Array = np.ndarray[Any, Any]

EPS = 1e-5
LIBRARY = kernels.info()
needs_library = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
BACKENDS = ["array", pytest.param(library.BACKEND, marks=needs_library)]
# Widths and hidden sizes around the tile sizes: 6 columns, 96 and 384 of them.
SIZES = {"odd": (20, 50, 5), "one head": (7, 13, 1), "deep": (18, 401, 3)}
TEXTS = {"one row": [1], "a panel": [16], "uneven": [5, 0, 40, 3], "many": [17] * 3}
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": np.vectorize(lambda u: u * (1 + math.erf(u / math.sqrt(2))) / 2, otypes=[np.float64]),
    "gelu_tanh": lambda u: 0.5 * u * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3))),
    "relu": lambda u: np.where(u > 0, u, 0),
}


def run(backend: str, *args: Any) -> Array:
    """Run the kernel of one backend, whatever the table would choose."""
    return kernels.KERNELS["encoder_blocks", backend].fn(*args)


def weights(width: int, hidden: int, seed: int = 0) -> dict[str, Affine]:
    """Return weights of all parts; the keys have no bias."""
    rng = np.random.default_rng(seed)
    shapes = dict.fromkeys(PARTS, (width, width)) | dict.fromkeys(NORMS, (width,))
    shapes |= {"up": (hidden, width), "down": (width, hidden)}
    parameters = {}
    for name, shape in shapes.items():
        weight = rng.standard_normal(shape) / math.sqrt(shape[-1]) + (name in NORMS)
        bias = rng.standard_normal(shape[0]).astype(np.float32)
        parameters[name] = Affine(weight.astype(np.float32), None if name == "key" else bias)
    return parameters


def blocks_of(sizes: str, activation: str = "gelu") -> list[EncoderBlock]:
    width, hidden, heads = SIZES[sizes]
    blocks = [weights(width, hidden, seed) for seed in (1, 2)]
    return [EncoderBlock(**parts, heads=heads, eps=EPS, activation=activation) for parts in blocks]


def texts_of(lengths: Sequence[int], width: int) -> tuple[Array, Array]:
    x = np.random.default_rng(3).standard_normal((sum(lengths), width)).astype(np.float32)
    return x, np.cumsum([0, *lengths])


def expected_of(
    x: Array,
    blocks: Sequence[EncoderBlock],
    offsets: Array,
    seen: Array | None,
    rows_of: Callable[[Array], Array] = lambda rows: rows,
) -> Array:
    """Compute the blocks in float64, text by text, in the simplest form.

    Args:  rows_of: returns the rows that quantised matrices are multiplied by.
    """
    y = x.astype(np.float64)
    for start, end in pairwise(offsets):
        keys = np.arange(start, end) if seen is None else np.flatnonzero(seen[:end])[int(seen[:start].sum()) :]
        for block in blocks:
            y[start:end] = _block(y[start:end], y[keys], block, rows_of)
    return y


def _block(x: Array, seen: Array, block: EncoderBlock, rows_of: Callable[[Array], Array]) -> Array:
    def times(rows: Array, name: str) -> Array:
        weight, bias = getattr(block, name)
        if isinstance(weight, BlockMatrix):
            rows, weight = rows_of(rows), weight.widen()
        return rows @ weight.T.astype(np.float64) + (0 if bias is None else bias)

    def norm(rows: Array, name: str) -> Array:
        weight, bias = getattr(block, name)
        spread = np.sqrt(rows.var(1, keepdims=True) + EPS)
        return (rows - rows.mean(1, keepdims=True)) / spread * weight + bias

    mixed = np.zeros_like(x)
    each = block.width // block.heads
    for head in range(block.heads):
        part = slice(head * each, (head + 1) * each)
        q, k, v = times(x, "query")[:, part], times(seen, "key")[:, part], times(seen, "value")[:, part]
        if len(seen):
            e = np.exp(q @ k.T / math.sqrt(each) - 5)  # not high enough to matter
            mixed[:, part] = e / e.sum(1, keepdims=True) @ v
    h = norm(x + times(mixed, "output"), "attention_norm")
    return norm(h + times(FUNCTIONS[block.activation](times(h, "up")), "down"), "output_norm")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("sizes", SIZES)
def test_values(backend: str, sizes: str, texts: str) -> None:
    blocks = blocks_of(sizes)
    x, offsets = texts_of(TEXTS[texts], SIZES[sizes][0])
    before = x.copy()
    for seen in (None, np.random.default_rng(5).random(len(x)) < 0.6, np.zeros(len(x), bool)):
        y = run(backend, x, blocks, offsets, seen)
        assert y.dtype == np.float32
        np.testing.assert_array_equal(x, before)
        np.testing.assert_allclose(y, expected_of(x, blocks, offsets, seen), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(backend: str, activation: str) -> None:
    blocks = blocks_of("odd", activation)
    x, offsets = texts_of([6, 4], 20)
    np.testing.assert_allclose(
        run(backend, x, blocks, offsets, None), expected_of(x, blocks, offsets, None), rtol=2e-5, atol=2e-5
    )


QUANTISED = {
    "all": ("query", "key", "value", "output", "up", "down"),
    "attention": ("query", "value", "output"),
    "up": ("up",),
    "down": ("key", "down"),
}


def quantised_blocks(names: Sequence[str], format: str, width: int = 64, hidden: int = 96) -> list[EncoderBlock]:
    rng, blocks = np.random.default_rng(4), []
    for seed in (1, 2):
        parts = weights(width, hidden, seed)
        for name in names:
            (rows, columns), bias = parts[name].weight.shape, parts[name].bias
            largest = 127 if format == "Q8_0" else 8
            matrix = random_matrix(format, rows, columns, rng, scale=2 / largest / math.sqrt(columns))
            parts[name] = Affine(matrix, bias)
        blocks.append(EncoderBlock(**parts, heads=4, eps=EPS))
    return blocks


@pytest.mark.parametrize("format", ["Q8_0", "Q4_0"])
@pytest.mark.parametrize("names", QUANTISED.values(), ids=QUANTISED)
@pytest.mark.parametrize("texts", TEXTS)
def test_quantised_matrices_in_array_code(texts: str, names: Sequence[str], format: str) -> None:
    blocks = quantised_blocks(names, format)
    x, offsets = texts_of(TEXTS[texts], 64)
    expected = expected_of(x, blocks, offsets, None)
    np.testing.assert_allclose(run("array", x, blocks, offsets, None), expected, rtol=2e-5, atol=2e-5)


def to_int8(rows: Array) -> Array:
    """Return rows as the compiled kernel rounds them."""
    if not len(rows):
        return rows
    codes, scales = rounded(rows.astype(np.float32))
    return (codes * scales.astype(np.float64)).reshape(rows.shape)


@needs_library
@pytest.mark.parametrize("format", ["Q8_0", "Q4_0"])
@pytest.mark.parametrize("names", QUANTISED.values(), ids=QUANTISED)
@pytest.mark.parametrize("texts", TEXTS)
def test_quantised_matrices(texts: str, names: Sequence[str], format: str) -> None:
    """An element near the middle between two codes may get either, which changes results by about 1e-3. Few do."""
    blocks = quantised_blocks(names, format)
    x, offsets = texts_of(TEXTS[texts], 64)
    for seen in (np.random.default_rng(5).random(len(x)) < 0.6, None):
        y = run(library.BACKEND, x, blocks, offsets, seen)
        difference = abs(y - expected_of(x, blocks, offsets, seen, to_int8))
        assert difference.max() < 0.05
        assert np.quantile(difference, 0.7) < 2e-5
    unrounded = abs(y - expected_of(x, blocks, offsets, None))
    assert unrounded.mean() > 1e-3  # so the comparison above can fail


@pytest.fixture
def mixed_blocks() -> list[EncoderBlock]:
    return [block for names in QUANTISED.values() for block in quantised_blocks(names, "Q8_0")]


@needs_library
def test_scratch_is_long_enough_for_quantised_matrices(
    mixed_blocks: list[EncoderBlock], poisoned_empty: list[GuardedArray]
) -> None:
    x, offsets = texts_of([40, 1, 90], 64)
    assert np.isfinite(run(library.BACKEND, x, mixed_blocks, offsets, None)).all()
    assert poisoned_empty
    for memory in poisoned_empty:
        memory.check_outside()


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_rows(backend: str) -> None:
    for lengths in ([], [0, 0]):
        assert run(backend, *_call("odd", lengths)).shape == (0, 20)


def _call(sizes: str, lengths: Sequence[int]) -> tuple[Array, list[EncoderBlock], Array, None]:
    x, offsets = texts_of(lengths, SIZES[sizes][0])
    return x, blocks_of(sizes), offsets, None


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_nan_stays_in_its_text(backend: str) -> None:
    x, blocks, offsets, _ = _call("odd", [5, 9])
    x[2, 3] = np.nan
    is_nan = np.isnan(run(backend, x, blocks, offsets, None)).any(axis=1)
    np.testing.assert_array_equal(is_nan, np.arange(14) < 5)


@needs_library
@pytest.mark.parametrize("texts", TEXTS)
def test_scratch_is_long_enough(texts: str, poisoned_empty: list[GuardedArray]) -> None:
    assert np.isfinite(run(library.BACKEND, *_call("deep", TEXTS[texts]))).all()
    assert poisoned_empty
    for memory in poisoned_empty:
        memory.check_outside()


@needs_library
def test_scratch_serves_all_blocks_on_one_thread(
    poisoned_empty: list[GuardedArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallow.kernels.bindings import encoder_block as binding

    monkeypatch.setattr(binding, "threads_for", lambda work: 1)
    x, blocks, offsets, seen = _call("odd", [5, 9])
    run(library.BACKEND, x, blocks, offsets, seen)
    arrays = len(poisoned_empty)
    run(library.BACKEND, x, blocks * 3, offsets, seen)
    assert len(poisoned_empty) == 2 * arrays


@pytest.fixture
def parts_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that lets as many units as it is told make a part, computed from the last part to the first."""
    from tallow.kernels.bindings import encoder_block as binding

    def divide(size: int) -> None:
        def each(function: Callable[..., None], shared: tuple[int, ...], units: int, work: float, scratch: int) -> None:
            for unit in reversed(range(0, units, size)):
                own = np.empty(scratch, np.float32)
                function(*shared, unit, min(unit + size, units), own.ctypes.data)

        monkeypatch.setattr(binding, "threads_for", lambda work: 2)
        monkeypatch.setattr(binding, "by_range", each)

    return divide


@needs_library
def test_threads_split_rows_and_heads(parts_of: Callable[[int], None]) -> None:
    call = _call("odd", [40, 3, 90])
    expected = run(library.BACKEND, *call)
    parts_of(1)
    np.testing.assert_array_equal(run(library.BACKEND, *call), expected)


@needs_library
@pytest.mark.parametrize("format", ["Q8_0", "Q4_0", "Q5_1", "Q4_K", "Q6_K", "Q3_K"])
@pytest.mark.parametrize("names", QUANTISED.values(), ids=QUANTISED)
def test_the_bits_of_a_text_depend_on_no_other_and_on_no_thread(
    names: Sequence[str], format: str, parts_of: Callable[[int], None]
) -> None:
    """Also of a row that is alone, or that begins another group: 128 rows are multiplied at a time."""
    blocks = quantised_blocks(names, format, 256, 256)
    lengths = [1, 2, 5, 120, 1, 3, 1]
    x, offsets = texts_of(lengths, 256)
    together = run(library.BACKEND, x, blocks, offsets, None)
    for size in (1, 2, 3, 9):
        parts_of(size)
        np.testing.assert_array_equal(run(library.BACKEND, x, blocks, offsets, None), together)
    for start, end in pairwise(offsets):
        alone = run(library.BACKEND, x[start:end], blocks, np.array([0, end - start]), None)
        np.testing.assert_array_equal(alone, together[start:end])
    for count in (1, 128, 129, 130):
        rows = run(library.BACKEND, x[:count], blocks, np.arange(count + 1), None)
        each = [run(library.BACKEND, x[i : i + 1], blocks, np.array([0, 1]), None) for i in (0, count - 1)]
        np.testing.assert_array_equal(rows[[0, count - 1]], np.concatenate(each))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_that_does_not_fit_is_an_error(backend: str) -> None:
    x, blocks, offsets, seen = _call("odd", [3, 2])
    with pytest.raises(ShapeError, match=r"x is \(5, 19\); expected rows of width 20"):
        run(backend, x[:, 1:], blocks, offsets, seen)
    for wrong in ([], [0, 3], [1, 5], [0, 6, 5], [0.0, 5.0]):
        with pytest.raises(ShapeError, match=r"do not ascend from 0 to the 5 rows"):
            run(backend, x, blocks, np.array(wrong), seen)
    for not_fit in (np.ones(4, bool), np.ones(5)):
        with pytest.raises(ShapeError, match=r"expected bool \(5,\)"):
            run(backend, x, blocks, offsets, not_fit)
    with pytest.raises(ShapeError, match=r"widths \[20, 7\]"):
        run(backend, x, [blocks[0], blocks_of("one head")[0]], offsets, seen)
    with pytest.raises(ShapeError, match=r"widths \[\]"):
        run(backend, x, [], offsets, seen)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_does_not_fit_is_named(name: str) -> None:
    parts = weights(6, 10)
    weight, bias = parts[name]
    for wrong in (Affine(np.concatenate([weight, weight]), bias), Affine(weight, np.ones(11, np.float32))):
        with pytest.raises(ShapeError):
            EncoderBlock(**parts | {name: wrong}, heads=2, eps=EPS)
    for wrong in (Affine(weight.astype(np.float64), bias), Affine(weight, np.ones(len(weight)))):
        with pytest.raises(DtypeError, match=name):
            EncoderBlock(**parts | {name: wrong}, heads=2, eps=EPS)


def test_a_block_of_other_heads_or_another_activation_is_an_error() -> None:
    for heads in (0, 4):
        with pytest.raises(ShapeError, match=f"{heads} heads do not divide a width of 6"):
            EncoderBlock(**weights(6, 10), heads=heads, eps=EPS)
    with pytest.raises(ArgumentError, match="activation='mish'"):
        EncoderBlock(**weights(6, 10), heads=2, eps=EPS, activation="mish")


@needs_library
def test_arrays_that_c_cannot_read_use_the_array_code() -> None:
    x, _, offsets, _ = _call("odd", [3, 2])
    parts = weights(20, 50)
    blocks = [EncoderBlock(**parts | {"up": Affine(np.asfortranarray(parts["up"].weight), None)}, heads=5, eps=EPS)]
    expected = run("array", x, blocks, offsets, None)
    np.testing.assert_array_equal(kernels.run("encoder_blocks", x, blocks, offsets, None), expected)
    with pytest.raises(KernelUnavailable, match="requirements"):
        run(library.BACKEND, x, blocks, offsets, None)
