"""Creating tensors: shared memory, and functions without a PyTorch counterpart."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl


@pytest.mark.cpu("shares memory with NumPy")
def test_from_numpy_and_as_tensor_share_memory_and_tensor_copies() -> None:
    array = np.zeros(3, np.float32)
    shared, also_shared, copied = tl.from_numpy(array), tl.as_tensor(array), tl.tensor(array)
    array[0] = 1
    assert (shared[0].item(), also_shared[0].item(), copied[0].item()) == (1, 1, 0)
    shared[1] = 2
    assert array[1] == 2


@pytest.mark.cpu("shares memory with NumPy")
def test_asarray_copy_argument() -> None:
    array = np.zeros(3, np.float32)
    assert not np.shares_memory(tl.asarray(array, copy=True).numpy(), array)
    assert np.shares_memory(tl.asarray(array, copy=False).numpy(), array)
    with pytest.raises(tl.errors.ArgumentError, match="without a copy"):
        tl.asarray(array, dtype=tl.float64, copy=False)


def test_tensor_of_a_tensor_is_a_new_leaf() -> None:
    x = tl.ones(2, requires_grad=True)
    y = tl.tensor(x * 2)
    assert y.is_leaf
    assert not y.requires_grad
    assert y.tolist() == [2.0, 2.0]


def test_uint16_arrays_become_uint16_tensors_and_not_bfloat16() -> None:
    array = np.array([1, 2], np.uint16)
    for make in (tl.tensor, tl.as_tensor, tl.from_numpy, tl.asarray, lambda a: tl.tensor([a])[0]):
        x = make(array)
        assert (x.dtype, x.tolist()) == (tl.uint16, [1, 2])
        assert x.to(tl.int64).tolist() == [1, 2]
        assert x.numpy().dtype == np.uint16


def test_frombuffer_reads_in_place_and_bytes_cannot_be_written() -> None:
    memory = bytearray(b"abcd")
    x = tl.frombuffer(memory, dtype=tl.uint8)
    memory[0] = 0
    assert x[0].item() == 0
    with pytest.raises(tl.errors.ShapeError, match="cannot be written"):
        tl.frombuffer(b"abcd", dtype=tl.uint8).zero_()


def test_from_dlpack_shares_memory() -> None:
    array = np.zeros(3, np.float32)
    x = tl.from_dlpack(array)
    x[1] = 5
    assert array[1] == 5
    back = np.from_dlpack(x)
    back[2] = 6
    assert x.tolist() == [0, 5, 6]


def test_meta_tensors_take_no_memory() -> None:
    size = (10**4, 5 * 10**4)  # 2 GB; 32-bit platforms cannot address more, even without memory
    for make in (tl.zeros, tl.ones, tl.empty):
        x = make(*size, device="meta")
        assert x.shape == size
        assert not any(np.ndarray.view(x.array, np.ndarray).strides)
        assert x.device.type == "meta"
    assert tl.empty_like(x).shape == x.shape
    assert tl.full(size, 3.0, device="meta").dtype is tl.float32


def test_default_dtype_decides_where_nothing_else_does() -> None:
    try:
        tl.set_default_dtype(tl.float64)
        assert tl.tensor(1.5).dtype is tl.zeros(1).dtype is tl.rand(1).dtype is tl.linspace(0, 1, 3).dtype is tl.float64
        assert tl.tensor(1).dtype is tl.int64
    finally:
        tl.set_default_dtype(tl.float32)
    assert tl.tensor(1.5).dtype is tl.float32


def test_long_lists_of_floats_keep_their_values() -> None:
    values = np.random.default_rng(0).standard_normal(1000)
    np.testing.assert_array_equal(tl.tensor(values.tolist(), dtype=tl.float64).numpy(), values)


@pytest.mark.parametrize("dtype", [tl.float32, tl.float64, tl.float16, tl.bfloat16, tl.int64, tl.bool])
def test_casts_there_and_back_change_nothing(dtype: tl.dtype) -> None:
    x = tl.tensor([0, 1, 1, 0]).to(dtype)
    assert x.dtype is dtype
    assert x.to(dtype) is x
    assert x.to(dtype, copy=True) is not x
    assert x.long().tolist() == [0, 1, 1, 0]


def test_bfloat16_rounds_to_nearest_even() -> None:
    # 1 + 2^-8 is halfway between 1 and 1 + 2^-7: the even one is 1; 1 + 3 · 2^-8 rounds up to 1 + 2^-6
    x = tl.tensor([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-16, float("nan")]).bfloat16().float()
    assert x[:3].tolist() == [1, 1 + 2**-6, 1 + 2**-7]
    assert x[3].item() != x[3].item()


def test_large_arrays_round_to_bfloat16_in_parts_as_small_ones_do() -> None:
    x = np.linspace(-3, 3, 3 * 50_001, dtype=np.float32).reshape(3, -1)
    for array in (x, x[:, ::-1], x[:, ::2]):  # rows small enough to convert at once
        converted = tl.tensor(array).bfloat16().float().numpy()
        rows = [tl.tensor(row).bfloat16().float().numpy() for row in array]
        np.testing.assert_array_equal(converted, np.stack(rows))


@pytest.mark.parametrize("name", ["empty", "ones", "rand", "randn", "zeros"])
def test_a_size_is_given_once(name: str) -> None:
    create, method = getattr(tl, name), getattr(tl.ones(2), f"new_{name}", None)
    for function in (create, method) if method is not None else (create,):
        assert function(2, 3).shape == function((2, 3)).shape == function(size=(2, 3)).shape == (2, 3)
        assert function(()).shape == function(size=()).shape == ()
        with pytest.raises(TypeError, match="missing argument 'size'"):
            function()
        with pytest.raises(TypeError, match="pass size once"):
            function(2, size=(3,))


def test_a_size_of_a_method_is_given_once() -> None:
    x = tl.ones(2)
    for function in (x.tile, x.broadcast_to, x.sum_to_size, x.resize_):
        name = "dims" if function == x.tile else "size"
        assert function(**{name: (2,)}).shape == function(2).shape
        with pytest.raises(TypeError, match=f"missing argument '{name}'"):
            function()
        with pytest.raises(TypeError, match=f"pass {name} once"):
            function(2, **{name: (3,)})
