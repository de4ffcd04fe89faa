"""What a training step in half precision does no more often than it has to, counted on the stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import cupy_like

import tallow as tl
from tallow import devices
from tallow.nn import functional as F
from tallow_cuda.bindings import convert


@pytest.fixture
def passes(cuda: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """The passes over memory that convert an array or bring it in order: what, and its shape."""
    if devices.get_backend("cuda").module is not cupy_like.MODULE:
        pytest.skip("counted on the stand-in")
    seen: list[tuple[str, tuple[int, ...]]] = []
    plain_launch, plain_copy = convert.launch_map, cupy_like.MODULE.ascontiguousarray

    def launch_map(kernel: Any, x: Any, y: Any) -> None:
        seen.append(("convert", x.shape))
        plain_launch(kernel, x, y)

    def ascontiguousarray(array: Any, *args: Any) -> Any:
        if not array.flags.c_contiguous:
            seen.append(("copy", array.shape))
        return plain_copy(array, *args)

    monkeypatch.setattr(convert, "launch_map", launch_map)
    monkeypatch.setattr(cupy_like.MODULE, "ascontiguousarray", ascontiguousarray)
    return seen


@pytest.mark.parametrize("product", ["linear", "matmul"])
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_a_gradient_is_rounded_once_for_both_products(
    product: str, dtype: tl.dtype, passes: list[tuple[str, tuple[int, ...]]]
) -> None:
    """For dx = g W and dW = gᵀ x, which reads it transposed where it lies."""
    rng = np.random.default_rng(0)
    x, w = (tl.tensor(rng.integers(-4, 5, shape), dtype=dtype, device="cuda") for shape in ((24, 16), (32, 16)))
    x.requires_grad_()
    w.requires_grad_()
    y = F.linear(x, w) if product == "linear" else x @ w.mT
    g = tl.tensor(rng.integers(-4, 5, (24, 32)), dtype=tl.float32, device="cuda")
    loss = (y.float() * g).sum()
    passes.clear()
    loss.backward()
    assert [found for found in passes if set(found[1]) == {24, 32}] == [("convert", (24, 32))], passes
    g, x_, w_ = (t.detach().float().cpu() for t in (g, x, w))
    np.testing.assert_array_equal(x.grad.float().cpu().numpy(), (g @ w_).numpy())
    np.testing.assert_array_equal(w.grad.float().cpu().numpy(), (g.mT @ x_).numpy())


def test_a_transposed_matrix_is_converted_as_it_lies(cuda: str, passes: list[tuple[str, tuple[int, ...]]]) -> None:
    x = tl.arange(24.0, device="cuda").reshape(2, 3, 4).permute(2, 0, 1)
    half = x.to(tl.bfloat16)
    assert passes == [("convert", (2, 3, 4))]
    assert half.stride() == x.stride() == (1, 12, 4)
    np.testing.assert_array_equal(half.float().cpu().numpy(), x.cpu().numpy())
