"""C functions that are called with arrays: arguments are converted as by ctypes, and wrong ones refused."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tallow import kernels
from tallow.kernels.library import FLOAT, INT, OFFSET, POINTER, SIZE, CFunction, function
from tallow.kernels.on_arrays import MOST_WORDS, Builtins, address, plan

kernels.info()  # loads the library
pytestmark = pytest.mark.skipif(not kernels.info().kernels, reason="the kernels are not built")


def softmax() -> CFunction:
    return function("tl_softmax_f32", None, POINTER, POINTER, SIZE, SIZE)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_the_result_is_that_of_a_call_with_addresses() -> None:
    x = normal(3, 5)
    y, expected = np.empty_like(x), np.empty_like(x)
    assert softmax().on_arrays(y, x, 3, 5) is None  # type: ignore[func-returns-value]
    softmax()(address(expected), address(x), 3, 5)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-6)


def test_none_is_a_null_pointer_and_a_float_follows_the_integers() -> None:
    layer_norm = function("tl_layer_norm_f32", None, *[POINTER] * 4, SIZE, SIZE, FLOAT)
    x, weight = normal(4, 6), normal(6)
    y, plain = np.empty_like(x), np.empty_like(x)
    layer_norm.on_arrays(y, x, weight, None, 4, 6, 1e-5)
    layer_norm.on_arrays(plain, x, None, None, 4, 6, 0)
    normalized = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normalized * weight, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(plain, normalized, rtol=1e-4, atol=1e-5)


def test_an_array_may_be_a_view_a_mapped_file_or_an_address(tmp_path: Path) -> None:
    x = normal(4, 5)
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=(4, 5))
    expected = np.empty((2, 5), np.float32)
    softmax().on_arrays(expected, x[1:3].copy(), 2, 5)
    for source in (x[1:3], mapped[1:3], address(x) + 20):
        y = np.empty((2, 5), np.float32)
        softmax().on_arrays(y, source, 2, 5)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("arguments", [(), (1, 2, 3), (1, 2, 3, 4, 5), ("y", None, 0, 5), (None, None, 0, 5.0)])
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"^a C function (got another number of arguments|takes arrays, None and ints)"):
        softmax().on_arrays(*arguments)


def test_numbers_that_are_too_large_or_not_numbers_are_refused() -> None:
    with pytest.raises(OverflowError):
        softmax().on_arrays(None, None, 1 << 80, 5)
    rms_norm = function("tl_rms_norm_f32", None, *[POINTER] * 3, SIZE, SIZE, FLOAT)
    with pytest.raises(TypeError, match="real number"):
        rms_norm.on_arrays(None, None, None, 0, 5, "eps")


STEPS = np.array([(20, 0, 0), (20, 0, 0), (-1, -1, 0), (0, 0, 0)], np.intp)  # of softmax: a row has 20 bytes


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_are_whole_groups_and_the_last_one_has_what_is_left(parts: int) -> None:
    x = normal(11, 5)
    y, expected = np.zeros_like(x), np.empty_like(x)
    softmax().on_arrays(expected, x, 11, 5)
    assert softmax().in_parts(None, parts, 0, 3, 3, 11, STEPS, y, x, 11, 5) == -1
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("arguments", [(), (1, 1, 1, 1, STEPS), (1.0, 1, 1, 1, STEPS, None, None, 0, 5)], ids=range(3))
def test_wrong_arguments_of_a_call_in_parts_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"^a C function (got another number of arguments|takes arrays, None and ints)"):
        softmax().in_parts(None, 1, *arguments)


def test_a_call_keeps_no_reference() -> None:
    x = normal(2, 3)
    y = np.empty_like(x)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        softmax().on_arrays(y, x, 2, 3)
        softmax().in_parts(None, 1, 0, 2, 1, 2, STEPS, y, x, 2, 3)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


@pytest.mark.skipif(sys.platform == "emscripten", reason="WASM has no functions of Python's in its table by address")
@pytest.mark.parametrize("floats", [0, 1])
@pytest.mark.parametrize("words", range(1, MOST_WORDS + 1))
def test_all_numbers_of_arguments_arrive_in_their_order(words: int, floats: int) -> None:
    types = [OFFSET] * words + [FLOAT] * floats
    calls: list[tuple[Any, ...]] = []
    made = ctypes.CFUNCTYPE(None, *types)(lambda *given: calls.append(given))
    made.__name__ = "made"  # type: ignore[attr-defined]
    given = (*[3 - i for i in range(words)], *[2.5] * floats)
    builtins().make(made, plan(made, 0, None, tuple(types)))(*given)
    assert calls == [given]


@pytest.mark.skipif(sys.platform == "emscripten", reason="WASM has no functions of Python's in its table by address")
@pytest.mark.parametrize("types", [(POINTER, FLOAT, SIZE), (POINTER, SIZE, FLOAT, FLOAT), (POINTER, INT, INT)])
def test_other_functions_are_called_by_ctypes(types: tuple[Any, ...]) -> None:
    x = normal(3)
    calls: list[tuple[Any, ...]] = []
    made = ctypes.CFUNCTYPE(None, *types)(lambda *given: calls.append(given))
    call = builtins().make(made, plan(made, 0, None, types))
    call(x, 2, 3, *[4] * (len(types) - 3))
    assert calls == [(address(x), 2, 3, *[4] * (len(types) - 3))]


def builtins() -> Builtins:
    from tallow.kernels import library

    made = library._builtins
    assert made is not None
    return made
