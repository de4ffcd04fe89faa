"""Device "meta": ops give shapes and dtypes, as PyTorch's do, and no values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentTypeError, DeviceError, ShapeError
from tallow.nn import functional as F

X, W = tl.empty(4, 6, device="meta"), tl.empty(5, 6, device="meta")
IMAGES = tl.empty(2, 3, 8, 8, device="meta")
INDEX = tl.zeros(4, 2, dtype=tl.int64, device="meta")
CALLS: dict[str, tuple[Callable[[], Any], tuple[int, ...], Any]] = {
    "add": (lambda: X + X[:1], (4, 6), tl.float32),
    "compare": (lambda: X > 0, (4, 6), tl.bool),
    "divide integers": (lambda: tl.arange(4, device="meta") / 2, (4,), tl.float32),
    "linear": (lambda: F.linear(X, W), (4, 5), tl.float32),
    "softmax": (lambda: X.double().softmax(-1), (4, 6), tl.float64),
    "mean": (lambda: X.mean(0, keepdim=True), (1, 6), tl.float32),
    "sums of a gigabyte": (lambda: tl.empty(1 << 20, 1 << 8, device="meta").sum(0), (1 << 8,), tl.float32),
    "maxima of all": (lambda: tl.empty(0, 4, 3, device="meta").amax((1, -1)), (0,), tl.float32),
    "count of all": (lambda: (X > 0).sum(), (), tl.int64),
    "wide kernel": (
        lambda: F.conv_transpose2d(IMAGES, tl.empty(3, 2, 2, 65535, device="meta")),
        (2, 2, 9, 65542),
        tl.float32,
    ),
    "cat": (lambda: tl.cat([X, X], 1), (4, 12), tl.float32),
    "view": (lambda: X.view(2, -1), (2, 12), tl.float32),
    "index": (lambda: X[1:, ::2], (3, 3), tl.float32),
    "where": (lambda: tl.where(X > 0, X, 0.0), (4, 6), tl.float32),
    "layer_norm": (lambda: F.layer_norm(X, (6,)), (4, 6), tl.float32),
    "conv2d": (lambda: F.conv2d(IMAGES, tl.empty(4, 3, 3, 3, device="meta"), stride=2), (2, 4, 3, 3), tl.float32),
    "attention": (lambda: F.scaled_dot_product_attention(IMAGES, IMAGES, IMAGES), (2, 3, 8, 8), tl.float32),
    "attention with a mask": (
        lambda: F.scaled_dot_product_attention(IMAGES, IMAGES, IMAGES, IMAGES[..., :8] > 0),
        (2, 3, 8, 8),
        tl.float32,
    ),
    "causal attention": (
        lambda: F.scaled_dot_product_attention(IMAGES, IMAGES, IMAGES, is_causal=True),
        (2, 3, 8, 8),
        tl.float32,
    ),
    "embedding": (lambda: F.embedding(INDEX, W), (4, 2, 6), tl.float32),
    "gather": (lambda: X.gather(1, INDEX), (4, 2), tl.float32),
    "in place": (lambda: X.clone().add_(1), (4, 6), tl.float32),
    "unfold": (lambda: F.unfold(IMAGES, 3), (2, 27, 36), tl.float32),
    "real view": (lambda: tl.view_as_real(tl.empty(3, dtype=tl.complex64, device="meta")), (3, 2), tl.float32),
    "einsum": (lambda: tl.einsum("ij,kj->ik", X, W), (4, 5), tl.float32),
}


@pytest.mark.parametrize("name", CALLS)
def test_ops_give_shapes_and_dtypes(name: str) -> None:
    call, shape, dtype = CALLS[name]
    result = call()
    assert (tuple(result.shape), result.dtype, result.device.type) == (shape, dtype, "meta")


@pytest.mark.parametrize(
    "call",
    [
        lambda: X[X > 0],
        lambda: X[1:, X[0] > 0],
        lambda: X.masked_select(X > 0),
        lambda: X.nonzero(),
        lambda: tl.argwhere(X),
        lambda: X.unique(),
        lambda: tl.bincount(INDEX[0]),
    ],
    ids=["mask", "masked columns", "masked_select", "nonzero", "argwhere", "unique", "bincount"],
)
def test_a_shape_that_depends_on_values_is_not_guessed(call: Callable[[], Any]) -> None:
    with pytest.raises(DeviceError, match="has no data"):
        call()


def test_no_memory_and_no_values() -> None:
    side = 200_000 if sys.maxsize > 2**32 else 20_000  # NumPy counts the bytes as if they were there
    huge = tl.zeros(side, side, device="meta")
    product = (huge @ huge.T).exp() + tl.ones(side, device="meta")
    assert product.shape == (side, side)
    assert not any(np.ndarray.view(product.array, np.ndarray).strides)
    assert product.data_ptr() == 0
    with pytest.raises(ShapeError):
        huge @ X
    with pytest.raises(DeviceError):
        product[0, 0].item()
    with pytest.raises(DeviceError):
        X + tl.ones(6)  # a tensor of another device


def test_numpy_is_refused() -> None:
    refusals = ArgumentTypeError, DeviceError  # the latter where tests copy from a device to the host
    with pytest.raises(refusals, match="meta"):
        tl.ones(2, device="meta").numpy()
    with pytest.raises(refusals, match="meta"):
        np.asarray(tl.ones(2, device="meta"))
