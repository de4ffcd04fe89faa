"""One token through one block: the compiled kernel and the array code against the formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.decode_blocks import BACKENDS, LIBRARY, STORAGE, Array, D, Reference, S, arrays, quantized_arrays
from support.guarded_arrays import GuardedArray
from support.quantized_blocks import COMPILED

import tallow.ops.quantized_linear  # noqa: F401 - array code of a kernel that blocks call
from tallow import kernels
from tallow.errors import ArgumentError, DtypeError, ShapeError, TallowError
from tallow.kernels import library
from tallow.kernels.blocks.decode_block import DecodeBlock
from tallow.kernels.quantized.block_matrix import BlockMatrix


def run(backend: str, x: Array, block: DecodeBlock, position: int) -> Array:
    """Run the kernel of one backend, whatever the table would choose."""
    return kernels.KERNELS["decode_block", backend].fn(x, block, position)


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
    with pytest.raises(ShapeError, match=r"expected \(1, 24\)"):
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


@pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
def test_arrays_that_c_cannot_read_use_the_array_code() -> None:
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


@pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")
@pytest.mark.parametrize("formats", [*((name,) for name in COMPILED), ("Q4_K", "Q6_K", "float32"), COMPILED], ids=str)
def test_quantised_matrices(
    formats: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The array code with the compiled products of rounded rows computes the same."""
    product = kernels.KERNELS["quantized_linear", library.BACKEND].fn

    def times(x: Array, matrix: Any) -> Array:
        return product(x, matrix, None) if isinstance(matrix, BlockMatrix) else matrix @ x

    monkeypatch.setattr("tallow.kernels.blocks.decode_block.product", times)
    blocks = [DecodeBlock(**quantized_arrays(formats), eps=1e-5, interleaved=True) for _ in range(2)]
    inputs = np.random.default_rng(9).standard_normal((S, 256)).astype(np.float32)
    expected = [run("array", x, blocks[0], position) for position, x in enumerate(inputs)]
    memory: list[GuardedArray] = request.getfixturevalue("poisoned_empty")
    for position, x in enumerate(inputs):
        y = run(library.BACKEND, x, blocks[1], position)
        np.testing.assert_allclose(y, expected[position], rtol=0.02, atol=0.02 * abs(expected[position]).max())
    assert memory
    for scratch in memory:
        scratch.check_outside()


def test_quantised_matrices_without_kernels() -> None:
    a = quantized_arrays(COMPILED)
    block = DecodeBlock(**a, eps=1e-5, interleaved=True)
    x = np.random.default_rng(9).standard_normal(256).astype(np.float32)
    with kernels.off():
        y = kernels.run("decode_block", x, block, 0)
    widened = {name: value.widen() if isinstance(value, BlockMatrix) else value for name, value in a.items()}
    expected = run("array", x, DecodeBlock(**widened, eps=1e-5, interleaved=True), 0)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
