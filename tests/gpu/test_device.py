"""Moving tensors between devices, and errors for mixed devices. test_errors.py tests errors if `cuda` is missing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tallow as tl
from tallow.errors import DeviceError

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint32", "uint8", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_moving_there_and_back_keeps_every_bit(dtype: str, cuda: str) -> None:
    x = tl.tensor([[0.0, 1.0, 2.5], [7.0, 100.25, 3.0]]).to(getattr(tl, dtype))
    moved = x.to(cuda)
    assert moved.device.type == "cuda"
    assert moved.dtype == x.dtype
    assert moved.shape == x.shape
    back = moved.cpu()
    assert back.device.type == "cpu"
    np.testing.assert_array_equal(back.array, x.array)


def test_moving_a_view_moves_its_values(cuda: str) -> None:
    x = tl.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(x.T[1:].to(cuda).cpu().numpy(), x.numpy().T[1:])


def test_moving_to_where_it_is_returns_itself(cuda: str) -> None:
    x = tl.ones(3, device=cuda)
    assert x.to(cuda) is x


def test_the_copy_is_a_copy(cuda: str) -> None:
    x = tl.zeros(3)
    moved = x.to(cuda)
    x += 1
    assert moved.cpu().tolist() == [0.0, 0.0, 0.0]
    back = moved.cpu()
    back += 1
    assert moved.cpu().tolist() == [0.0, 0.0, 0.0]


def test_creation_on_the_device(cuda: str) -> None:
    assert tl.full((2, 2), 3.0, device=cuda).cpu().tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert tl.arange(3, device=cuda).device.type == "cuda"
    assert tl.zeros_like(tl.ones(2, device=cuda)).device.type == "cuda"


def test_same_seed_same_numbers_on_every_device(cuda: str) -> None:
    tl.manual_seed(3)
    cpu_values = tl.randn(4)
    tl.manual_seed(3)
    assert tl.randn(4, device=cuda).cpu().tolist() == cpu_values.tolist()


def test_views_share_memory(cuda: str) -> None:
    x = tl.zeros(2, 3, device=cuda)
    x[0] += 1
    x.view(-1)[4] = 5
    assert x.cpu().tolist() == [[1.0, 1.0, 1.0], [0.0, 5.0, 0.0]]


def test_gradient_crosses_devices(cuda: str) -> None:
    x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x.to(cuda) * 2).cpu().sum().backward()
    assert x.grad is not None
    assert x.grad.device.type == "cpu"
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_stale_saved_value_is_noticed(cuda: str) -> None:
    x = tl.ones(3, device=cuda, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"in-?place"):
        y.sum().backward()


@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: tl.cat([a, b]),
        lambda a, b: tl.where(a > 0, a, b),
        lambda a, b: a.add_(b),
        lambda a, b: tl.nn.functional.linear(a, b),
        lambda a, b: tl.nn.functional.embedding(b.long(), a),
        lambda a, b: tl.nn.functional.embedding(a.long(), b),
        lambda a, b: a.gather(0, b.long()),
        lambda a, b: b.index_select(0, a.long()[0]),
    ],
)
def test_two_devices_do_not_mix(mix: Callable[[tl.Tensor, tl.Tensor], object], cuda: str) -> None:
    with pytest.raises(DeviceError, match=r"same device, found (cpu and cuda|cuda:0 and cpu|cuda and cpu)"):
        mix(tl.ones(2, 2, device=cuda), tl.ones(2, 2))


def test_scalar_tensor_of_the_cpu_joins_any_device(cuda: str) -> None:
    assert (tl.ones(2, device=cuda) * tl.tensor(3.0)).cpu().tolist() == [3.0, 3.0]


def test_numpy_of_a_device_tensor_raises_with_a_hint(cuda: str) -> None:
    with pytest.raises(TypeError, match="cpu"):
        tl.ones(2, device=cuda).numpy()


def test_printing(cuda: str) -> None:
    assert repr(tl.tensor([1.0, 2.0], device=cuda)) == "tensor([1., 2.], device='cuda:0')"


@pytest.mark.gpu
class TestCupyBackend:
    """Tests that need CuPy itself."""

    def test_arrays_are_cupys_on_the_requested_device(self) -> None:
        import cupy

        x = tl.ones(3, device="cuda:0")
        assert isinstance(x.array, cupy.ndarray)
        assert x.device == tl.device("cuda:0")

    def test_a_device_beyond_the_last_one_is_named(self) -> None:
        with pytest.raises(DeviceError, match=r"device not found: 'cuda:99'\n.*the last one is 'cuda:\d+'"):
            tl.ones(3, device="cuda:99")

    def test_cuda_array_interface_shares_memory(self) -> None:
        import cupy

        x = tl.zeros(3, device="cuda")
        cupy.asarray(x)[1] = 2
        assert x.cpu().tolist() == [0.0, 2.0, 0.0]


def test_lists_index_tensors_of_the_cpu_whatever_the_default_device(cuda: str) -> None:
    x = tl.arange(3)
    tl.set_default_device(cuda)
    try:
        assert x[[2, 0]].tolist() == [2, 0]
        assert tl.arange(3)[[2, 0]].device.type == "cuda"
    finally:
        tl.set_default_device(None)
