"""Blocks with states: the compiled kernel and the array code against the formulas in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.decode_blocks import BACKENDS, LIBRARY, STORAGE, Array
from support.guarded_arrays import GuardedArray
from support.quantized_blocks import COMPILED, random_matrix

from tallow import kernels
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels import library
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.decode_stack import DecodeStack
from tallow.kernels.blocks.state_block import GatedConvolution, GatedDeltaRule, StateBlock

D, F, W, G, H, K, V = 24, 37, 4, 2, 6, 5, 7
EPS, POSITIONS = 1e-3, 12
KINDS = ["convolution", "delta rule", "tiled delta rule"]
NEEDS_LIBRARY = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")


def arrays(kind: str, dtype: str = "float32") -> dict[str, Array]:
    """The arrays of a block but the states, by the names of its arguments and of the mixer's."""
    rng = np.random.default_rng(len(kind))
    narrow, _ = STORAGE[dtype]
    channels = D if kind == "convolution" else 2 * G * K + H * V
    mixed = D if kind == "convolution" else H * V
    shapes = {"output": (D, mixed), "gate": (F, D), "up": (F, D), "down": (D, F)}
    if kind == "convolution":
        shapes |= {"input": (3 * D, D)}
    else:
        shapes |= {"mixed_input": (channels, D), "delta_gate": (H * V, D), "beta": (H, D), "size": (H, D)}
    found = {name: narrow(rng.standard_normal(shape) / np.sqrt(shape[1])) for name, shape in shapes.items()}
    vectors = {"norm": D, "mlp_norm": D, "output_bias": D, "input_bias": 3 * D, "bias": D, "delta_norm": V}
    vectors |= {"log_rate": H, "size_bias": H}
    found |= {name: rng.uniform(0.5, 1.5, size).astype(np.float32) for name, size in vectors.items()}
    return found | {"weight": rng.standard_normal((channels, W)).astype(np.float32)}


def block_of(kind: str, a: dict[str, Any], texts: int) -> StateBlock:
    past = np.full((texts, W - 1, len(a["weight"])), np.nan, np.float32)
    mixer: GatedConvolution | GatedDeltaRule
    if kind == "convolution":
        mixer = GatedConvolution(Affine(a["input"], a["input_bias"]), a["weight"], a["bias"], past)
    else:
        inputs = [Affine(a[name], None) for name in ("mixed_input", "delta_gate", "beta", "size")]
        heads, width = len(a["log_rate"]), len(a["delta_norm"])
        state = np.full((texts, heads, (len(a["weight"]) - heads * width) // (2 * G), width), np.nan, np.float32)
        tiled = kind.startswith("tiled")
        rates = a["log_rate"], a["size_bias"], a["delta_norm"]
        mixer = GatedDeltaRule(*inputs, a["weight"], *rates, past, state, tiled)
    output, names = Affine(a["output"], a["output_bias"]), ("mlp_norm", "gate", "up", "down")
    return StateBlock(a["norm"], mixer, output, *(a[name] for name in names), EPS, POSITIONS)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


class Reference:
    """One text in float64, in the simplest form: transformers' `Lfm2ShortConv` and `Qwen3_5GatedDeltaNet`."""

    def __init__(self, kind: str, a: dict[str, Array], dtype: str = "float32") -> None:
        widen = STORAGE[dtype][1]
        self.kind = kind
        self.w = {n: (widen(x) if x.ndim == 2 and n != "weight" else x).astype(np.float64) for n, x in a.items()}
        self.inputs = [np.zeros(len(a["weight"]))] * (W - 1)
        self.state = np.zeros((H, K, V))

    def norm(self, x: Array, weight: str) -> Array:
        return x / np.sqrt(np.mean(x**2) + EPS) * self.w[weight]

    def convolution(self, x: Array) -> Array:
        self.inputs = [*self.inputs, x]
        return sum(tap * each for tap, each in zip(self.w["weight"].T, self.inputs[-W:], strict=True))  # type: ignore[return-value]

    def mixed(self, n: Array) -> Array:
        w = self.w
        if self.kind == "convolution":
            b, c, x = np.split(w["input"] @ n + w["input_bias"], 3)
            return c * (self.convolution(b * x) + w["bias"])
        u = silu(self.convolution(w["mixed_input"] @ n))
        q, k, v = u[: G * K].reshape(G, K), u[G * K : 2 * G * K].reshape(G, K), u[2 * G * K :].reshape(H, V)
        gate = (w["delta_gate"] @ n).reshape(H, V)
        heads = []
        for h in range(H):
            g = h % G if self.kind.startswith("tiled") else h // (H // G)
            query, key = (x[g] / np.sqrt(np.sum(x[g] ** 2) + 1e-6) for x in (q, k))
            beta = 1 / (1 + np.exp(-(w["beta"] @ n)[h]))
            decay = np.exp(-np.exp(w["log_rate"][h]) * np.log1p(np.exp((w["size"] @ n)[h] + w["size_bias"][h])))
            s = decay * self.state[h]
            self.state[h] = s + np.outer(key, beta * (v[h] - s.T @ key))
            heads.append(self.norm(self.state[h].T @ query / np.sqrt(K), "delta_norm") * silu(gate[h]))
        return np.concatenate(heads)

    def __call__(self, x: Array) -> Array:
        x = x.astype(np.float64)
        h = x + self.w["output"] @ self.mixed(self.norm(x, "norm")) + self.w["output_bias"]
        m = self.norm(h, "mlp_norm")
        return h + self.w["down"] @ (silu(self.w["gate"] @ m) * (self.w["up"] @ m))


def run(backend: str, x: Array, block: StateBlock, places: Any) -> Array:
    """Run the kernel of one backend, whatever the table would choose."""
    y: Array = kernels.KERNELS["state_block", backend].fn(x, block, places)
    return y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", STORAGE)
def test_texts_that_begin_at_different_positions(backend: str, kind: str, dtype: str) -> None:
    """Before its first position a text has rows of padding, which see themselves only."""
    rng = np.random.default_rng(6)
    a, starts = arrays(kind, dtype), [2, 0, 1]
    block, references = block_of(kind, a, 3), [Reference(kind, a, dtype) for _ in starts]
    for position in range(6):
        x = rng.standard_normal((3, D)).astype(np.float32)
        places = np.array([(text, position, min(start, position)) for text, start in enumerate(starts)])
        y = run(backend, x, block, places)
        assert y.dtype == np.float32
        for text, start in enumerate(starts):
            if start <= position:
                np.testing.assert_allclose(y[text], references[text](x[text]), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_positions_of_one_text_together_and_one_by_one(backend: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    a, x = arrays(kind), rng.standard_normal((9, D)).astype(np.float32)
    block, reference = block_of(kind, a, 2), Reference(kind, a)
    expected = [reference(row) for row in x]
    places = np.array([(1, position, 0) for position in range(9)])
    y = [run(backend, x[part], block, places[part]) for part in (slice(0, 6), slice(6, 8), slice(8, 9))]
    np.testing.assert_allclose(np.concatenate(y), expected, rtol=1e-4, atol=2e-5)
    assert all(np.isnan(state[0]).all() for state in block.mixer.states)  # of the other text
    alone = run(backend, x[0], block_of(kind, a, 1), 0)
    np.testing.assert_allclose(alone, expected[0], rtol=1e-4, atol=2e-5)


def quantized(kind: str, formats: tuple[str, ...]) -> dict[str, Any]:
    """A block whose matrices are of these formats in turn, with vectors and kernels of `arrays`."""
    rng = np.random.default_rng(8)
    d, f, v, k = 256, 512, 64, 64
    rows = {"output": (d, d), "gate": (f, d), "up": (f, d), "down": (d, f)}
    channels = d if kind == "convolution" else 2 * G * k + 4 * v
    if kind == "convolution":
        rows |= {"input": (3 * d, d)}
    else:
        rows |= {"mixed_input": (channels, d), "delta_gate": (4 * v, d), "beta": (4, d), "size": (4, d)}
    vectors = {"norm": d, "mlp_norm": d, "output_bias": d, "input_bias": 3 * d, "bias": d, "delta_norm": v}
    vectors |= {"log_rate": 4, "size_bias": 4}
    a: dict[str, Any] = {name: rng.uniform(0.5, 1.5, size).astype(np.float32) for name, size in vectors.items()}
    for i, (name, shape) in enumerate(rows.items()):
        found = random_matrix(formats[i % len(formats)], *shape, rng)
        a[name] = random_matrix(found.format, *shape, rng, scale=0.05 / abs(found.widen()).mean())
    return a | {"weight": rng.standard_normal((channels, W)).astype(np.float32)}


@NEEDS_LIBRARY
@pytest.mark.threads
@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("rows", [1, 7])
def test_quantised_parts_compute_the_same(
    kind: str, rows: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Any number of threads gives the same bits, near those of the array code, and writes inside its arrays only."""
    rng = np.random.default_rng(8)
    a, x = quantized(kind, COMPILED), rng.standard_normal((rows, 256)).astype(np.float32)
    places = np.array([(row % 2, row // 2, 0) for row in range(rows)])
    expected = run("array", x, block_of(kind, a, 2), places)
    memory: list[GuardedArray] = request.getfixturevalue("poisoned_empty")
    results = []
    for parts in (1, 3, 7):
        monkeypatch.setattr("tallow.kernels.bindings.threads.thread_count", lambda parts=parts: parts)
        monkeypatch.setattr("tallow.kernels.bindings.threads.WORTH_A_THREAD", 1)
        results.append(run(library.BACKEND, x, block_of(kind, a, 2), places))
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])
    np.testing.assert_allclose(results[0], expected, rtol=0.05, atol=0.05 * np.abs(expected).max())
    assert memory
    for scratch in memory:
        scratch.check_outside()


@pytest.mark.parametrize("backend", BACKENDS)
def test_places_outside(backend: str) -> None:
    block = block_of("convolution", arrays("convolution"), 1)
    with pytest.raises(ArgumentError, match=f"position {POSITIONS} lies outside"):
        run(backend, np.ones(D, np.float32), block, POSITIONS)
    with pytest.raises(ShapeError, match=r"x is \(2, 24\)"):
        run(backend, np.ones((2, D), np.float32), block, 0)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_arrays_that_do_not_fit(kind: str) -> None:
    a = arrays(kind)
    for name in {"output", "up", "mlp_norm", "weight"} | ({"input", "bias"} if kind == "convolution" else {"beta"}):
        with pytest.raises(ShapeError, match="StateBlock: "):
            block_of(kind, a | {name: a[name][:-1].copy()}, 1)
    with pytest.raises(DtypeError, match="weight is float64"):
        block_of(kind, a | {"weight": a["weight"].astype(np.float64)}, 1)
    with pytest.raises(DtypeError, match="expected one dtype"):
        block_of(kind, a | {"up": a["up"].astype(np.float16)}, 1)


@pytest.mark.parametrize("channels", [H * V, H * V - 2 * K])
def test_channels_without_keys_are_refused(channels: int) -> None:
    block = block_of("delta rule", arrays("delta rule"), 1)
    mixer: Any = block.mixer
    mixed_input = Affine(mixer.mixed_input.weight[:channels], None)
    parts = {"mixed_input": mixed_input, "weight": mixer.weight[:channels], "past": mixer.past[..., :channels]}
    with pytest.raises(ShapeError, match=f"{channels} channels do not fit"):
        replace(block, mixer=replace(mixer, **parts))


def test_half_a_feed_forward_part_is_refused() -> None:
    block = block_of("convolution", arrays("convolution"), 1)
    for parts in ({"up": None}, {"gate": None, "up": None, "down": None}, {"mlp": silu}):
        with pytest.raises(ShapeError, match="gate, up and down, or mlp"):
            replace(block, **parts)


def test_blocks_of_different_texts_do_not_make_a_stack() -> None:
    blocks = [block_of("convolution", arrays("convolution"), texts) for texts in (1, 2)]
    with pytest.raises(ShapeError, match="DecodeStack: blocks of"):
        DecodeStack(blocks, None, EPS)
