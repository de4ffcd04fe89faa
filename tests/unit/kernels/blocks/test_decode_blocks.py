"""Rows through a stack of blocks: the compiled kernel and the array code against the formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.decode_blocks import (
    BACKENDS,
    LIBRARY,
    STORAGE,
    Array,
    D,
    G,
    K,
    Reference,
    S,
    additions,
    arrays,
    quantized_arrays,
)
from support.guarded_arrays import GuardedArray
from support.quantized_blocks import COMPILED

from tallow import kernels
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels import library
from tallow.kernels.bindings.arrays import address
from tallow.kernels.blocks.decode_block import DecodeBlock
from tallow.kernels.blocks.decode_stack import DecodeStack
from tallow.kernels.quantized.int8_rows import Int8Rows, rounded

EPS = 1e-5
NEEDS_LIBRARY = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")


def run(backend: str, x: Array, stack: DecodeStack, places: Any) -> Array:
    """Run the kernel of one backend, whatever the table would choose."""
    y: Array = kernels.KERNELS["decode_blocks", backend].fn(x, stack, places)
    return y


def layers(dtype: str, texts: int) -> list[dict[str, Array]]:
    """The arrays of two blocks, with caches for several texts."""
    unwritten = np.full((texts, G, S, K), np.nan, np.float32)
    return [arrays(seed, dtype) | {"key_cache": unwritten.copy(), "value_cache": unwritten.copy()} for seed in (3, 4)]


def stack_of(layers: list[dict[str, Any]], norm: Array | None = None) -> DecodeStack:
    return DecodeStack([DecodeBlock(**a, eps=EPS, interleaved=True) for a in layers], norm, EPS)


class References:
    """Texts in float64, each with its own cache, and the last norm."""

    def __init__(self, layers: list[dict[str, Array]], dtype: str, texts: int, norm: Array) -> None:
        self.texts = [[Reference(a, dtype, True, EPS) for a in layers] for _ in range(texts)]
        self.norm = norm.astype(np.float64)

    def __call__(self, x: Array, text: int, position: int) -> Array:
        y = x
        for block in self.texts[text]:
            y = block(y, position)
        return y / np.sqrt(np.mean(y**2) + EPS) * self.norm


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("starts", [[0], [2, 0], [0, 1, 2, 0, 3], [*range(4)] * 4], ids=len)
def test_a_position_of_each_text(backend: str, dtype: str, starts: list[int]) -> None:
    """Texts of different lengths, of which the shorter ones begin later in the cache."""
    rng = np.random.default_rng(6)
    norm = rng.uniform(0.5, 1.5, D).astype(np.float32)
    a = layers(dtype, len(starts))
    stack, reference = stack_of(a, norm), References(a, dtype, len(starts), norm)
    for position in range(S):
        rows = [(text, position, start) for text, start in enumerate(starts) if start <= position]
        x = rng.standard_normal((len(rows), D)).astype(np.float32)
        y = run(backend, x, stack, np.array(rows))
        assert y.dtype == np.float32
        expected = [reference(row, text, position) for row, (text, _, _) in zip(x, rows, strict=True)]
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", STORAGE)
def test_positions_of_one_text_see_those_before_them(backend: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((S, D)).astype(np.float32)
    a = layers(dtype, 2)
    reference = References(a, dtype, 1, np.ones(D, np.float32))
    expected = [reference(row, 0, position) for position, row in enumerate(x)]
    stack, places = stack_of(a, np.ones(D, np.float32)), np.array([(1, position, 0) for position in range(S)])
    y = [run(backend, x[part], stack, places[part]) for part in (slice(0, 6), slice(6, 8), slice(8, S))]
    np.testing.assert_allclose(np.concatenate(y), expected, rtol=1e-4, atol=2e-5)
    assert np.isnan(a[0]["key_cache"][0]).all()  # of the other text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "names", [("query_bias", "key_bias", "value_bias"), ("query_norm", "key_norm"), ("key_norm",)], ids=str
)
def test_biases_and_norms_of_heads(backend: str, names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(11)
    a = [each | {name: additions(seed)[name] for name in names} for seed, each in enumerate(layers("float32", 2))]
    norm = np.ones(D, np.float32)
    stack, reference = stack_of(a, norm), References(a, "float32", 2, norm)
    for position in range(S):
        x = rng.standard_normal((2, D)).astype(np.float32)
        y = run(backend, x, stack, np.array([(0, position, 0), (1, position, 0)]))
        expected = [reference(row, text, position) for text, row in enumerate(x)]
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cache_of_float16_rounds_once(backend: str) -> None:
    """Values of any size, and those around the middle between two float16, subnormal ones included."""
    rng = np.random.default_rng(10)
    middles = (rng.integers(0, 2048, 200) + 0.5) * 2.0 ** rng.integers(-24, 5, 200)
    near = [np.nextafter(middles.astype(np.float32), np.float32(end)) for end in (0, 1e9)]
    wide = rng.standard_normal(200) * 2.0 ** rng.integers(-30, 13, 200)
    values = np.concatenate([middles, *near, wide, [0.0, 2**-14, 2**-24, 2**-25, 65519.0]]).astype(np.float32)
    values = np.resize(values, (-(-len(values) // (G * K)), G * K)) * rng.choice(np.float32([-1, 1]))
    a = arrays(3)
    a["value"][:] = np.eye(G * K, D)
    a |= {name: np.zeros((1, G, S, K), np.float16) for name in ("key_cache", "value_cache")}
    for row in values:
        a["attention_norm"][: G * K] = row
        stack = DecodeStack([DecodeBlock(**a, eps=0.0, interleaved=True)], None, EPS)
        run(backend, np.ones((1, D), np.float32), stack, 0)
        np.testing.assert_array_equal(a["value_cache"][0, :, 0].ravel(), row.astype(np.float16))


@NEEDS_LIBRARY
@pytest.mark.threads
@pytest.mark.parametrize("rows", [1, 2, 5, 16])
@pytest.mark.parametrize("formats", [("float32",), COMPILED, ("Q4_K", "float32", "Q8_0")], ids=str)
def test_parts_compute_the_same(
    rows: int, formats: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Any number of threads gives the same bits, and writes inside its arrays only."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((rows, 256)).astype(np.float32)
    places = np.array([(row, 4, row % 3) for row in range(rows)])
    cache = rng.standard_normal((2, rows, 2, S, 32)).astype(np.float32)
    a = quantized_arrays(formats)
    caches = [{"key_cache": cache[0].copy(), "value_cache": cache[1].copy()} for _ in range(3)]
    memory: list[GuardedArray] = request.getfixturevalue("poisoned_empty")
    results = []
    for parts, own in zip((1, 3, 7), caches, strict=True):
        monkeypatch.setattr("tallow.kernels.bindings.threads.thread_count", lambda parts=parts: parts)
        monkeypatch.setattr("tallow.kernels.bindings.threads.WORTH_A_THREAD", 1)
        results.append(run(library.BACKEND, x, stack_of([a | own, a | own]), places))
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])
    assert memory
    for scratch in memory:
        scratch.check_outside()


@NEEDS_LIBRARY
@pytest.mark.parametrize("formats", [(name,) for name in COMPILED], ids=str)
def test_quantised_rows_together_and_alone(formats: tuple[str, ...]) -> None:
    rng = np.random.default_rng(9)
    x = rng.standard_normal((7, 256)).astype(np.float32)
    together, alone = (stack_of([quantized_arrays(formats)]) for _ in range(2))
    y = run(library.BACKEND, x, together, np.array([(0, position, 0) for position in range(7)]))
    expected = [run(library.BACKEND, row[None], alone, position)[0] for position, row in enumerate(x)]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("places", "error", "match"),
    [
        (S, ArgumentError, f"position {S} lies outside the cache of {S} positions"),
        (-1, ArgumentError, "position -1 lies outside"),
        ([(0, 1, 0)], ShapeError, r"places \(1, 3\); expected \(M, 24\) and \(M, 3\)"),
        ([(0, 1, 0), (0, S, 0)], ArgumentError, f"position {S} lies outside"),
        ([(0, 1, 0), (2, 1, 0)], ArgumentError, "are not texts below 2"),
        ([(0, 1, 0), (-1, 1, 0)], ArgumentError, "are not texts below 2"),
        ([(0, 1, 0), (0, 1, 2)], ArgumentError, "starts up to those positions"),
        ([(0, 1, 0), (0, 1, -1)], ArgumentError, "starts up to those positions"),
    ],
)
def test_places_outside_the_cache(backend: str, places: Any, error: type[Exception], match: str) -> None:
    x = np.ones((1 if isinstance(places, int) else 2, D), np.float32)
    with pytest.raises(error, match=match):
        run(backend, x, stack_of(layers("float32", 2)), places if isinstance(places, int) else np.array(places))


def test_blocks_that_do_not_fit_each_other() -> None:
    a, b = layers("float32", 2)
    with pytest.raises(ShapeError, match="expected one of each"):
        stack_of([a, b | {name: b[name][:1] for name in ("key_cache", "value_cache")}])
    with pytest.raises(ShapeError, match="the norm is"):
        stack_of([a, b], np.ones(D + 1, np.float32))
    with pytest.raises(DtypeError, match="float64, not float32"):
        stack_of([a, b], np.ones(D))


@NEEDS_LIBRARY
def test_a_block_that_c_cannot_read_uses_the_array_code() -> None:
    x, places = np.ones((2, D), np.float32), np.array([(0, 0, 0), (1, 0, 0)])
    expected = run("array", x, stack_of(layers("float32", 2)), places)
    a = layers("float32", 2)
    a[1]["up"] = np.asfortranarray(a[1]["up"])
    assert kernels.pick("decode_blocks", "cpu", x, stack_of(a), places).backend == "array"
    np.testing.assert_allclose(kernels.run("decode_blocks", x, stack_of(a), places), expected, rtol=1e-5, atol=1e-6)


@NEEDS_LIBRARY
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(np.uint16)], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 4, 5, 16, 33, 300])
@pytest.mark.parametrize(("n", "k"), [(7, 3), (101, 48), (20, 1400), (600, 600)])
def test_products_with_half_precision_weights(dtype: Any, rows: int, n: int, k: int) -> None:
    """Weights are widened a few rows at a time; every number of rows of x gives the product of widened weights."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((rows, k)).astype(np.float32)
    narrow, widened = STORAGE["float16" if dtype.kind == "f" else "bfloat16"]
    # Rows of the weight lie apart, as those of a slice do.
    weight = narrow(rng.standard_normal((n, k + 5)))[:, 2 : k + 2]
    bias = rng.standard_normal(n).astype(np.float32)
    expected = x.astype(np.float64) @ widened(weight).astype(np.float64).T + bias
    linear = kernels.KERNELS["linear", library.BACKEND]
    assert linear.accepts is not None
    assert linear.accepts(x, weight, bias)
    y = linear.fn(x, weight, bias)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=2e-4)


@NEEDS_LIBRARY
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(np.uint16)], ids=["float16", "bfloat16"])
def test_caches_in_half_precision(dtype: Any) -> None:
    """Keys and values are rounded to the nearest, as the array code does, and attention reads the rounded ones."""
    stacks = []
    for _ in range(2):
        a = layers("float32", 3)
        for each in a:
            each |= {name: np.zeros((3, G, S, K), dtype) for name in ("key_cache", "value_cache")}
            each["value"] *= 3e4 if dtype.kind == "f" else 1  # of which some overflow float16
            each["output"] *= 1e-5 if dtype.kind == "f" else 1
        stacks.append(stack_of(a[:1]))
    rng = np.random.default_rng(12)
    for position in range(S):
        x = rng.standard_normal((3, D)).astype(np.float32) * np.float32(0.1 if position else 1e-6)
        places = np.array([(text, position, min(text, position)) for text in range(3)])
        with np.errstate(over="ignore", invalid="ignore"):
            expected, y = (
                run(b, x, stack, places) for b, stack in zip(("array", library.BACKEND), stacks, strict=True)
            )
        np.testing.assert_allclose(y, expected, rtol=2e-2, atol=2e-2)
    for name in ("key_cache", "value_cache"):
        ours, theirs = (getattr(stack.blocks[0], name).view(np.int16).astype(int) for stack in reversed(stacks))
        assert abs(ours - theirs).max() <= 1  # products differ in the last bits of float32
        assert (ours == theirs).mean() > 0.9


def in_int8(layers: list[dict[str, Any]], texts: int) -> list[dict[str, Any]]:
    """The same blocks with empty caches in int8."""
    names = ("key_cache", "value_cache")
    shape = (texts, G, S, K)
    return [
        a | {name: Int8Rows(np.zeros(shape, np.int8), np.zeros(shape[:-1], np.float32)) for name in names}
        for a in layers
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", STORAGE)
def test_caches_in_int8_hold_the_rounded_rows(backend: str, dtype: str) -> None:
    """The first block stores the keys and values that a float32 cache holds, rounded; attention reads those."""
    rng = np.random.default_rng(13)
    x = rng.standard_normal((3 * S, D)).astype(np.float32)
    places = np.array([(text, position, min(text, position)) for text in range(3) for position in range(S)])
    a, b = layers(dtype, 3), layers(dtype, 3)
    narrow = in_int8(b, 3)
    expected, y = run(backend, x, stack_of(a[:1]), places), run(backend, x, stack_of(narrow[:1]), places)
    assert 0 < abs(y - expected).max() < 0.03 * abs(expected).max()
    for name in ("key_cache", "value_cache"):
        ours, exact = narrow[0][name], a[0][name]
        theirs = rounded(exact)
        np.testing.assert_array_equal(ours.scales, theirs.scales)
        np.testing.assert_array_equal(ours.codes, theirs.codes)


@NEEDS_LIBRARY
@pytest.mark.parametrize("interleaved", [True, False])
def test_the_compiled_int8_cache_agrees_with_the_array_code(interleaved: bool) -> None:
    """Rows of zeros, of NaN and of infinities too: only the heads that see them become NaN."""
    rng = np.random.default_rng(14)
    narrow = [in_int8(layers("float32", 4), 4) for _ in range(2)]
    blocks = [[DecodeBlock(**a, eps=EPS, interleaved=interleaved) for a in each] for each in narrow]
    stacks = [DecodeStack(each, None, EPS) for each in blocks]
    for position in range(S):
        x = rng.standard_normal((4, D)).astype(np.float32)
        x[1] = 0
        x[2, 3] = np.nan if position == 4 else x[2, 3]
        x[3, 5] = np.inf if position == 6 else x[3, 5]
        places = np.array([(text, position, 0) for text in range(4)])
        with np.errstate(invalid="ignore", over="ignore"):
            expected, y = run("array", x, stacks[0], places), run(library.BACKEND, x, stacks[1], places)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
        assert np.isnan(y[2]).any() == (position >= 4)
        assert np.isnan(y[3]).any() == (position >= 6)
        assert np.isfinite(y[:2]).all()
        np.testing.assert_allclose(y, expected, rtol=2e-2, atol=2e-2)
    for name in ("key_cache", "value_cache"):
        theirs, ours = (getattr(stack.blocks[0], name) for stack in stacks)
        np.testing.assert_allclose(ours.scales, theirs.scales, rtol=1e-5)
        assert abs(ours.codes.astype(int) - theirs.codes).max() <= 1
        assert (ours.codes == theirs.codes).mean() > 0.98
        assert not ours.codes[1].any()


@NEEDS_LIBRARY
def test_subnormal_and_tied_rows_of_a_compiled_int8_cache() -> None:
    """Values that are the input itself: the kernel rounds every row to the codes of the array code."""
    tiny = 2.0**-149
    rows = [[127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, 125.5], [180 * tiny, -200 * tiny, tiny, 0, 0, 0, 0, 0]]
    rows += [[3e38, -3e38, 1, 0, 2e36, 1e38, -1e38, 7], [1e-40, 2e-40, -3e-40, 0, 0, 0, 1e-41, 0]]
    round_rows = library.function("tl_round_int8_rows", None, *[library.POINTER] * 3, *[library.SIZE] * 2)
    for row in rows:
        x = np.array(row, np.float32)
        codes, scale = np.zeros((1, 8), np.int8), np.zeros(1, np.float32)
        round_rows(address(codes), address(scale), address(x), 1, 8)
        expected = rounded(x[None])
        np.testing.assert_array_equal(codes, expected.codes)
        np.testing.assert_array_equal(scale, expected.scales)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_position_may_be_any_integer(backend: str) -> None:
    """NumPy's default integer has 32 bits in WebAssembly, and C reads 64."""
    rng = np.random.default_rng(15)
    x = rng.standard_normal((3, D)).astype(np.float32)
    places = [(1, 0, 0), (1, 1, 0), (0, 0, 0)]
    expected = run(backend, x, stack_of(layers("float32", 2)), np.array(places, np.int64))
    for dtype in (np.int32, np.int16):
        y = run(backend, x, stack_of(layers("float32", 2)), np.array(places, dtype))
        np.testing.assert_array_equal(y, expected)
    backwards = np.array(places[::-1], np.int64)[::-1]  # the same places, not contiguous
    np.testing.assert_array_equal(run(backend, x, stack_of(layers("float32", 2)), backwards), expected)


def test_one_cache_in_int8_and_one_of_floats() -> None:
    a = layers("float32", 1)[0]
    narrow = in_int8([a], 1)[0]["key_cache"]
    with pytest.raises(DtypeError, match="key_cache int8, value_cache float32"):
        DecodeBlock(**a | {"key_cache": narrow}, eps=EPS, interleaved=True)
