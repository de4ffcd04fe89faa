"""Products with the quantised blocks of GGUF keep the contracts of quantized_linear.h and round_rows_f32.c."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray
from support.quantized_blocks import COMPILED, magnitudes, random_matrix, rounded

import tallow as tl
from tallow import kernels
from tallow.core.apply import apply
from tallow.errors import ArgumentError, DeviceError, DtypeError, ShapeError
from tallow.kernels import library
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix
from tallow.ops.quantized_linear import quantized_linear

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
compiled = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

ULP = 2.0**-23
rng = np.random.default_rng(14)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def call(x: Array, matrix: BlockMatrix, bias: Array | None = None) -> Array:
    """The compiled kernel itself, whatever the table would choose."""
    kernel = kernels.KERNELS["quantized_linear", library.BACKEND]
    assert kernel.accepts is not None
    assert kernel.accepts(x, matrix, bias)
    return kernel.fn(x, matrix, bias)


def sizes(name: str) -> list[int]:
    return [32, 64, 96, 288, 544] if FORMATS[name].weights == 32 else [256, 512, 768]


def check(x: Array, matrix: BlockMatrix, bias: Array, y: Array) -> None:
    """Compare with the product in float64 of the same integers, and with that of x itself."""
    codes, scales = rounded(x)
    x_rounded = (codes.astype(np.float64) * scales).reshape(x.shape)
    weights, terms = matrix.widen().astype(np.float64), magnitudes(matrix)
    roundings = (x.shape[1] / 32 + 16) * ULP * (abs(x_rounded) @ terms.T + abs(bias))
    assert (abs(y - (x_rounded @ weights.T + bias)) <= roundings).all()
    half_steps = np.broadcast_to(0.50001 * scales, codes.shape).reshape(x.shape) @ abs(weights).T
    assert (abs(y - (x.astype(np.float64) @ weights.T + bias)) <= roundings + half_steps).all()


@compiled
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7, 9, 15, 26])
def test_product_of_the_rounded_rows(name: str, m: int) -> None:
    for k in sizes(name):
        for n in (1, 2, 17, 33, 48):
            matrix, x, bias = random_matrix(name, n, k, rng), normal(m, k), normal(n)
            check(x, matrix, bias, call(x, matrix, bias))
            check(x, matrix, np.zeros(n, np.float32), call(x, matrix))


@compiled
@pytest.mark.parametrize("name", COMPILED)
def test_writes_stay_inside_the_result(name: str, request: pytest.FixtureRequest) -> None:
    cases = [(normal(m, 256), random_matrix(name, n, 256, rng)) for m in (1, 3, 4, 6, 15, 26) for n in (1, 16, 19, 48)]
    memory: list[GuardedArray] = request.getfixturevalue("poisoned_empty")  # random numbers are drawn into plain memory
    for x, matrix in cases:
        call(x, matrix)
        memory.pop().check()
        assert not memory


@compiled
@pytest.mark.parametrize("name", COMPILED)
def test_integers_are_exact(name: str) -> None:
    """With x of integers up to 127 and powers of two as scales every sum is an integer below 2^24."""
    k = sizes(name)[0]
    matrix = random_matrix(name, 9, k, rng)
    for field in {"d", "dmin"} & set(FORMATS[name].record.names or ()):
        matrix.blocks.reshape(9, -1, FORMATS[name].record.itemsize).view(FORMATS[name].record)[field] = 0.25
    if name == "Q6_K":
        matrix.blocks.view(FORMATS[name].record)["scales"] = rng.integers(-8, 8, (9, 1, 16))
    x = rng.integers(-10, 11, (5, k)).astype(np.float32)
    x[:, ::32] = rng.choice([-127, 127], (5, k // 32))
    expected = x.astype(np.float64) @ matrix.widen().astype(np.float64).T
    np.testing.assert_array_equal(call(x, matrix), expected)
    for row, product in zip(x, expected, strict=True):  # one row is multiplied in another way than several
        np.testing.assert_array_equal(call(row, matrix), product)


@compiled
@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("name", COMPILED)
def test_extreme_codes_do_not_overflow(name: str, byte: int) -> None:
    k = 256
    matrix = random_matrix(name, 3, k, rng)
    fields = set(FORMATS[name].record.names or ()) - {"d", "dmin"}
    for field in fields:
        records = matrix.blocks.reshape(3, -1, FORMATS[name].record.itemsize).view(FORMATS[name].record)
        records[field] = np.uint8(byte).astype(records[field].dtype)
    for x in (np.full((2, k), 3, np.float32), np.where(rng.random((2, k)) < 0.5, -1, 1).astype(np.float32)):
        for rows in (x, x[:1]):
            check(rows, matrix, np.zeros(3, np.float32), call(rows, matrix))


@compiled
def test_rows_are_rounded_as_the_model_in_numpy() -> None:
    function = library.function("tl_round_rows_f32", None, *[library.POINTER] * 2, *[library.SIZE] * 2)
    size = library.function("tl_rounded_bytes", library.SIZE, library.SIZE)
    x = np.concatenate([normal(6, 96) * np.float32(10.0**e) for e in (-40, -30, -3, 0, 20, 37) for _ in range(40)])
    x[0, :32] = 0
    x[3 * 240 + 7, 32:64] = np.arange(32) + 0.5  # ties, with a scale of 1
    x[3 * 240 + 7, 32] = 127
    x[-1] = np.finfo(np.float32).max
    memory = np.full((len(x), size(96) // 4), np.nan, np.float32)
    function(memory.ctypes.data, x.ctypes.data, len(x), 96)
    codes, scales = rounded(x)
    raw = memory.view(np.uint8).reshape(len(x), -1)
    scales_at = raw.shape[1] - 4 * 4 * 3  # before the sums: 3 of each of 3 blocks
    np.testing.assert_array_equal(raw[:, scales_at:].view(np.float32)[:, :3], scales[..., 0])
    halves = codes.reshape(len(x), 3, 2, 16).sum(axis=3)
    sums = of_halves_and_blocks(halves)
    np.testing.assert_array_equal(raw[:, scales_at + 12 :].view(np.float32).reshape(sums.shape), sums)
    if scales_at == 2 * 96 and "x86-64-v" not in LIBRARY.library:
        np.testing.assert_array_equal(raw[:, :192].view(np.int16).reshape(codes.shape), codes)
        return
    stored = raw[:, :96].view(np.int8).reshape(codes.shape)
    if LIBRARY.library == "wasm relaxed-simd":
        np.testing.assert_array_equal(stored, abs(codes))
        np.testing.assert_array_equal(raw[:, 96:192].view(np.int8).reshape(codes.shape), -(codes < 0).astype(np.int8))
        negative = np.where(codes < 0, codes, 0).reshape(len(x), 3, 2, 16).sum(axis=3)
        np.testing.assert_array_equal(corrections(raw[:, 192:scales_at]), -of_halves_and_blocks(negative))
        return
    np.testing.assert_array_equal(stored, codes)
    if scales_at > 96:
        np.testing.assert_array_equal(corrections(raw[:, 96:scales_at]), -sums)


def of_halves_and_blocks(halves: Array) -> Array:
    """Shapes: (rows, blocks, 2) -> (rows, 3, blocks), the sums of the halves last."""
    return np.stack([halves[..., 0], halves[..., 1], halves.sum(axis=2)], axis=1)


def corrections(raw: Array) -> Array:
    return np.ascontiguousarray(raw).view(np.int32).reshape(len(raw), 3, -1)


@compiled
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_nan_and_others_are_not(value: float) -> None:
    matrix, x = random_matrix("Q4_0", 5, 64, rng), normal(3, 64)
    expected = call(x, matrix)
    x[1, 40] = value
    y = call(x, matrix)
    assert np.isnan(y[1]).all()
    np.testing.assert_array_equal(y[[0, 2]], expected[[0, 2]])


@compiled
@pytest.mark.parametrize("name", COMPILED)
def test_scales_of_float16(name: str) -> None:
    """Subnormal, infinite and NaN scales are those of the array code."""
    k = sizes(name)[0]
    matrix, x = random_matrix(name, 4, k, rng), normal(1, k)
    records = matrix.blocks.reshape(4, -1, FORMATS[name].record.itemsize).view(FORMATS[name].record)
    records["d"][:, 0] = np.array([6e-8, 6e-5, np.nan, -65504], np.float16).reshape(records["d"][:, 0].shape)
    with np.errstate(all="ignore"):
        y, finite = call(x, matrix), [0, 1, 3]
    check(x, BlockMatrix(matrix.blocks[finite], name), np.zeros(3, np.float32), y[:, finite])
    assert np.isnan(y[0, 2])


@compiled
@pytest.mark.parametrize("name", COMPILED)
def test_blocks_at_any_address(name: str) -> None:
    matrix, x = random_matrix(name, 5, 256, rng), normal(2, 256)
    expected = call(x, matrix)
    memory = np.empty(matrix.nbytes + 1, np.uint8)
    memory[1:] = matrix.blocks.reshape(-1)
    np.testing.assert_array_equal(call(x, BlockMatrix(memory[1:].reshape(5, -1), name)), expected)
    strided = np.empty((2, 512), np.float32)[:, ::2]
    strided[...] = x
    np.testing.assert_array_equal(call(strided, matrix), expected)


@compiled
@pytest.mark.parametrize("name", COMPILED)
def test_rows_do_not_depend_on_each_other(name: str) -> None:
    matrix, x = random_matrix(name, 37, 768, rng), normal(29, 768)
    together = call(x, matrix)
    for rows in (slice(0, 2), slice(2, 5), slice(1, 8), slice(3, 20), slice(2, 27)):
        np.testing.assert_array_equal(call(x[rows], matrix), together[rows])


@compiled
@pytest.mark.threads
@pytest.mark.parametrize("name", COMPILED)
def test_any_number_of_threads_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, x, bias = random_matrix(name, 37, 256, rng), normal(6, 256), normal(37)
    expected = call(x, matrix, bias)
    monkeypatch.setattr("tallow.kernels.bindings.threads.thread_count", lambda: 3)
    monkeypatch.setattr("tallow.kernels.bindings.threads.WORTH_A_THREAD", 1)
    np.testing.assert_array_equal(call(x, matrix, bias), expected)


@compiled
def test_empty_products() -> None:
    matrix = random_matrix("Q4_0", 5, 64, rng)
    assert call(normal(0, 64), matrix).shape == (0, 5)
    assert call(normal(2, 0, 64), matrix).shape == (2, 0, 5)
    assert call(normal(64), BlockMatrix(matrix.blocks[:0], "Q4_0")).shape == (0,)
    none = BlockMatrix(np.empty((5, 0), np.uint8), "Q4_0")
    np.testing.assert_array_equal(call(normal(2, 0), none, np.arange(5, dtype=np.float32)), [range(5)] * 2)


@compiled
def test_what_the_kernel_refuses() -> None:
    matrix, x = random_matrix("Q4_0", 5, 64, rng), normal(2, 64)
    accepts = kernels.KERNELS["quantized_linear", library.BACKEND].accepts
    assert accepts is not None
    assert accepts(x, matrix, None)
    assert not accepts(x.astype(np.float64), matrix, None)
    assert not accepts(x, BlockMatrix(matrix.blocks[::2], "Q4_0"), None)
    assert not accepts(x, matrix, np.zeros(5))
    assert not accepts(x, random_matrix("IQ4_NL", 5, 64, rng), None)
    assert not accepts(x, GroupedMatrix.of(matrix), None)
    assert not accepts(normal(64)[0], matrix, None)
    with pytest.raises(ShapeError, match="do not fit each other"):
        call(normal(2, 32), matrix)


@pytest.mark.parametrize("name", [*FORMATS])
def test_the_op_multiplies_by_the_weights_it_stands_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallow.ops.quantized_linear.PANEL", 1000)  # of less than all rows
    matrix = random_matrix(name, 9, 256, rng, scale=0.01)
    x, bias = tl.from_numpy(normal(2, 3, 256)).requires_grad_(), tl.from_numpy(normal(9)).requires_grad_()
    weight = tl.from_numpy(matrix.widen())
    with kernels.off():
        y = apply(quantized_linear, x, matrix, bias)
        expected = x @ weight.T + bias
    g = tl.from_numpy(normal(2, 3, 9))
    grads = tl.autograd.grad((y * g).sum(), (x, bias))
    plain_grads = tl.autograd.grad((expected * g).sum(), (x, bias))
    x_abs, weight_abs, bias_abs, g_abs = (np.abs(each.detach().numpy()) for each in (x, weight, bias, g))
    terms = (x_abs @ weight_abs.T + bias_abs, g_abs @ weight_abs, g_abs.sum((0, 1)))
    for result, plain, sums in zip((y.detach(), *grads), (expected.detach(), *plain_grads), terms, strict=True):
        np.testing.assert_array_less(np.abs(result.numpy() - plain.numpy()), 16 * ULP * sums)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float64])
def test_the_result_has_the_dtype_of_the_input(dtype: tl.dtype) -> None:
    matrix, x = random_matrix("Q8_0", 5, 64, rng, scale=0.01), normal(2, 64)
    y = apply(quantized_linear, tl.from_numpy(x).to(dtype), matrix)
    assert y.dtype is dtype
    np.testing.assert_allclose(y.float().numpy(), x @ matrix.widen().T, rtol=0.05, atol=0.2)


def test_bad_operands() -> None:
    x, matrix = tl.ones(2, 64), random_matrix("Q4_0", 5, 64, rng)
    with pytest.raises(ShapeError, match=r"input \(2, 32\) does not fit a weight \(5, 64\)"):
        apply(quantized_linear, x[:, :32], matrix)
    with pytest.raises(ShapeError, match="does not fit"):
        apply(quantized_linear, x, matrix, tl.ones(4))
    with pytest.raises(ShapeError, match="whole Q8_0 blocks of 34 bytes"):
        BlockMatrix(matrix.blocks, "Q8_0")
    with pytest.raises(ShapeError, match="float32 of shape"):
        BlockMatrix(x.numpy(), "Q4_0")
    with pytest.raises(ArgumentError, match="unknown format 'Q9'"):
        BlockMatrix(matrix.blocks, "Q9")
    with pytest.raises(DtypeError, match="not of floats"):
        apply(quantized_linear, x.long(), matrix)
    with pytest.raises(DeviceError, match="the input is on meta, the weight on cpu"):
        apply(quantized_linear, x.to("meta"), matrix)


@pytest.mark.parametrize("name", [*FORMATS])
def test_rows_are_those_of_the_whole_matrix(name: str) -> None:
    matrix = random_matrix(name, 7, 256, rng)
    whole = matrix.widen()
    assert whole.shape == matrix.shape == (7, 256)
    assert matrix.nbytes == matrix.blocks.size
    index = np.array([[3, 0, 6], [6, 6, 1]])
    np.testing.assert_array_equal(matrix.rows(index), whole[index])
    np.testing.assert_array_equal(matrix.rows(slice(2, 5)), whole[2:5])
    assert matrix.rows(np.zeros((0, 2), np.int64)).shape == (0, 2, 256)
