"""Tensor as a Python object: pickling, copying, NumPy, DLPack, iteration, truth, subclasses."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, MissingNameError, ShapeError

ALL_DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint32", "uint8", "bool"]


@pytest.mark.parametrize("name", ALL_DTYPES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_keeps_values_dtype_and_requires_grad(name: str, protocol: int) -> None:
    dtype = getattr(tl, name)
    x = tl.tensor([[0, 1], [1, 0]]).to(dtype)
    if x.is_floating_point():
        x.requires_grad_()
    y = pickle.loads(pickle.dumps(x, protocol))
    assert type(y) is tl.Tensor
    assert y.dtype is dtype
    assert y.tolist() == x.tolist()
    assert y.requires_grad == x.requires_grad
    assert pickle.loads(pickle.dumps(dtype, protocol)) is dtype


def test_pickling_a_view_keeps_only_the_view() -> None:
    x = tl.zeros(1000, 1000)
    assert len(pickle.dumps(x[0, :3])) < 2000


def test_what_has_a_history_is_pickled_without_it_and_not_copied_deeply() -> None:
    y = tl.ones(2, requires_grad=True) * 2
    z = pickle.loads(pickle.dumps(y))
    assert z.is_leaf
    assert z.requires_grad
    assert z.tolist() == [2, 2]
    assert copy.copy(y).is_leaf
    with pytest.raises(GraphError, match="leaf"):
        copy.deepcopy(y)
    assert copy.deepcopy(y.detach()).tolist() == [2, 2]


def test_deepcopy_copies_memory_gradient_and_identity() -> None:
    x = tl.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    pair = copy.deepcopy({"a": x, "b": x})
    y = pair["a"]
    assert pair["b"] is y
    assert y.requires_grad
    assert y.grad.tolist() == [3, 3]
    y.grad.zero_()
    with tl.no_grad():
        y.zero_()
    assert (x.tolist(), x.grad.tolist()) == ([1, 1], [3, 3])


def test_a_shallow_copy_shares_memory() -> None:
    x = tl.ones(2)
    copy.copy(x).zero_()
    assert x.tolist() == [0, 0]


class Named(tl.Tensor):
    def __new__(cls, data: tl.Tensor, name: str) -> Named:
        self = super().__new__(cls, data)
        self.name = name
        return self


def test_subclasses_survive_pickling_and_copying() -> None:
    x = Named(tl.ones(2), "weight")
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert type(y) is Named
        assert y.tolist() == [1, 1]
        assert y.name == "weight"
    assert type(x + 1) is Named  # as in PyTorch, without what the program has added


@pytest.mark.cpu("shares memory with NumPy")
def test_numpy_shares_memory_both_ways() -> None:
    x = tl.zeros(3)
    array = x.numpy()
    array[0] = 1
    x[1] = 2
    assert x.tolist() == array.tolist() == [1, 2, 0]
    assert np.asarray(x) is not None
    assert np.shares_memory(np.asarray(x), array)
    assert not np.shares_memory(np.array(x), array)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)


@pytest.mark.cpu("NumPy's functions take its tensors alone")
def test_numpy_functions_take_tensors_and_operators_give_tensors() -> None:
    x = tl.tensor([1.0, 2.0])
    assert np.sum(x) == 3
    assert type(np.sin(x)) is tl.Tensor
    for operand in (np.array([1.0, 3.0]), np.array([1, 3])):
        assert type(x + operand) is type(operand + x) is tl.Tensor
        assert (x == operand).tolist() == (operand == x).tolist() == [True, False]
        assert (operand - x).tolist() == [0, 1]
    assert (x + np.ones(2)).dtype is tl.float64
    assert type(np.float32(2) * x) is tl.Tensor
    assert (np.float64(2) * x).dtype is tl.float32  # a Python number, as in PyTorch
    x.requires_grad_()
    (np.array([3.0, 4.0]) * x).sum().backward()
    assert x.grad.tolist() == [3, 4]


def test_numpy_of_unsupported_tensors_is_refused() -> None:
    with pytest.raises(GraphError, match="detach"):
        tl.ones(1, requires_grad=True).numpy()
    with pytest.raises(ArgumentTypeError, match="bfloat16"):
        tl.ones(1, dtype=tl.bfloat16).numpy()
    assert tl.ones(1, dtype=tl.bfloat16).requires_grad_().numpy(force=True).dtype == np.float32


@pytest.mark.cpu("shares memory with NumPy")
def test_dlpack_shares_memory_both_ways() -> None:
    x = tl.zeros(3)
    array = np.from_dlpack(x)
    x[0] = 1
    assert array.tolist() == [1, 0, 0]
    back = tl.from_dlpack(x)
    back[1] = 2
    assert x.tolist() == [1, 2, 0]
    assert x.__dlpack_device__() == (1, 0)  # kDLCPU
    with pytest.raises(GraphError, match="detach"):
        tl.ones(1, requires_grad=True).__dlpack__()


def test_there_is_no_cuda_interface_on_the_cpu() -> None:
    assert not hasattr(tl.zeros(1, device="cpu"), "__cuda_array_interface__")


def test_iteration_length_and_membership() -> None:
    x = tl.arange(6).reshape(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert 5 in x
    assert 7 not in x
    list(x)[1].zero_()  # the rows are views
    assert x.tolist() == [[0, 1], [0, 0], [4, 5]]
    for refused in (len, list):
        with pytest.raises(ArgumentTypeError, match="0-d tensor"):
            refused(tl.zeros(()))


@pytest.mark.cpu("elsewhere the device is printed too")
def test_conversion_to_python_numbers() -> None:
    assert int(tl.tensor(3.7)) == 3
    assert float(tl.tensor([2])) == 2.0
    assert bool(tl.tensor(0.5)) is True
    assert [10, 20, 30][tl.tensor(1)] == 20
    assert f"{tl.tensor(3.14159):.2f}" == "3.14"
    assert f"{tl.tensor([1.0])}" == "tensor([1.])"
    assert range(tl.tensor(3)) == range(3)
    with pytest.raises(ArgumentTypeError, match="integer tensors"):
        [1, 2][tl.tensor(1.0)]
    with pytest.raises(ArgumentError, match="cannot be converted to Scalar"):
        float(tl.zeros(2))
    for ambiguous in (tl.zeros(2), tl.zeros(0)):
        with pytest.raises(ShapeError, match="ambiguous"):
            bool(ambiguous)


def test_tensors_are_hashed_by_identity_and_compared_by_element() -> None:
    x, y = tl.ones(2), tl.ones(2)
    assert len({x, y, x}) == 2
    assert (x == y).tolist() == [True, True]


def test_size_stride_and_memory() -> None:
    x = tl.zeros(2, 3, 4, dtype=tl.float64)
    assert x.size() == x.shape == (2, 3, 4)
    assert x.size(-1) == 4
    assert x.stride() == (12, 4, 1)
    assert x.transpose(0, 2).stride(0) == 1
    assert x[1:, 1].storage_offset() == 16
    assert (x.numel(), x.nelement(), x.dim(), x.ndim, x.nbytes, x.itemsize, x.element_size()) == (
        24,
        24,
        3,
        3,
        192,
        8,
        8,
    )
    assert x[1].data_ptr() - x.data_ptr() == 96
    assert x.is_contiguous()
    assert not x.mT.is_contiguous()
    assert repr(x.shape) == "tallow.Size([2, 3, 4])"
    assert x.shape.numel() == 24


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("s[1:]", (3, 4)),
        ("s[::-1]", (4, 3, 2)),
        ("s[3:]", ()),
        ("s * 2", (2, 3, 4, 2, 3, 4)),
        ("0 * s", ()),
        ("s + (1,)", (2, 3, 4, 1)),
        ("(1,) + s", (1, 2, 3, 4)),
        ("s + (True, tl.tensor(5))", (2, 3, 4, 1, 5)),
        ("tl.Size([True, tl.tensor(5)])", (1, 5)),
        ("sum([s, s], ())", (2, 3, 4, 2, 3, 4)),
    ],
)
def test_parts_and_sums_of_shapes_are_shapes(expression: str, expected: tuple[int, ...]) -> None:
    part = eval(expression, {"s": tl.zeros(2, 3, 4).shape, "tl": tl})
    assert type(part) is tl.Size
    assert part == expected
    assert type(tl.zeros(2, 3, 4).shape[1]) is int


@pytest.mark.parametrize("expression", ["[1] + s", "s + [1]", "1 + s", "s * 1.5", "s * s", "s['a']"])
def test_shapes_take_what_tuples_take(expression: str) -> None:
    with pytest.raises(TypeError):
        eval(expression, {"s": tl.zeros(2, 3).shape})


def test_a_missing_attribute_raises() -> None:
    with pytest.raises(MissingNameError, match="no attribute 'frobnicate'"):
        tl.zeros(1).frobnicate  # noqa: B018
    with pytest.raises(MissingNameError, match="no attribute 'frobnicate'"):
        tl.frobnicate  # noqa: B018
    assert not hasattr(tl.zeros(1), "frobnicate")


def test_the_constructor_takes_arrays_sequences_and_sizes() -> None:
    assert tl.Tensor(2, 3).shape == (2, 3)
    assert tl.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert tl.Tensor(np.array([1, 2], np.int8)).dtype is tl.float32
    assert tl.Tensor().shape == (0,)
    with pytest.warns(UserWarning, match="Casting complex values to real"):
        assert tl.Tensor(np.zeros(2, np.complex64)).tolist() == [0, 0]


def test_data_is_the_same_memory_and_can_be_replaced() -> None:
    x = tl.ones(2, requires_grad=True)
    x.data.mul_(3)
    assert x.tolist() == [3, 3]
    x.data = tl.zeros(2)
    assert x.tolist() == [0, 0]
    assert x.requires_grad


def test_memory_formats() -> None:
    """The strides that PyTorch documents; tests/parity compares all functions that take a memory format."""
    x = tl.arange(120.0).reshape(2, 3, 4, 5)
    last = x.contiguous(memory_format=tl.channels_last)
    assert last.stride() == (60, 1, 15, 3)
    assert last.is_contiguous(memory_format=tl.channels_last)
    assert not last.is_contiguous()
    assert not x.is_contiguous(memory_format=tl.channels_last)
    for tensor in (x.half(memory_format=tl.channels_last), x.cpu(memory_format=tl.channels_last), last.double()):
        assert tensor.stride() == last.stride()
        assert tl.equal(tensor.to(x.device).float(), x)
    for like in (tl.empty_like, tl.zeros_like, tl.rand_like, tl.randn_like):
        assert like(last).stride() == like(x, memory_format=tl.channels_last).stride() == last.stride()
        assert like(last, memory_format=tl.contiguous_format).is_contiguous()
    assert tl.empty(2, 3, 4, 5, memory_format=tl.channels_last).stride() == last.stride()
    with pytest.raises(RuntimeError, match="channels_last is for 4 dims, not for 3"):
        tl.empty_like(x[0], memory_format=tl.channels_last)
    with pytest.raises(TypeError, match="memory_format must be one of"):
        x.clone(memory_format="channels_last")  # type: ignore[arg-type]
