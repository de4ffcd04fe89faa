"""Convolutions: tiles, errors, and identities that hold for any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
import tallow.nn.functional as F
from tallow.ops import convolution_maps


def tensor(*shape: int) -> tl.Tensor:
    return tl.tensor(np.random.default_rng(sum(shape)).standard_normal(shape), requires_grad=True)


def value_and_gradients(function: Any, *inputs: tl.Tensor) -> list[Any]:
    y = function(*inputs)
    g = np.random.default_rng(0).standard_normal(y.array.shape)
    return [y.detach().numpy(), *(d.numpy() for d in tl.autograd.grad(y, inputs, tl.tensor(g)))]


@pytest.mark.parametrize("tile", [1, 200, 700, 2000])
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=(2, 1)), [(3, 4, 9, 8), (6, 4, 2, 3)]),
        (lambda x, w: F.conv1d(x, w, groups=2), [(3, 4, 9), (6, 2, 3)]),
        (lambda x, w: F.conv_transpose2d(x, w, stride=(3, 2), padding=1), [(3, 4, 5, 4), (4, 2, 2, 3)]),
    ],
    ids=["conv2d", "conv1d", "conv_transpose2d"],
)
def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch, tile: int, function: Any, shapes: Any) -> None:
    inputs = [tensor(*shape) for shape in shapes]
    expected = value_and_gradients(function, *inputs)
    monkeypatch.setattr(convolution_maps, "TILE", tile)
    for a, b in zip(value_and_gradients(function, *inputs), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_delta_kernel_is_the_identity() -> None:
    x = tensor(2, 3, 7, 5)
    delta = np.zeros((3, 1, 3, 3))
    delta[:, :, 1, 1] = 1
    np.testing.assert_array_equal(F.conv2d(x, tl.tensor(delta), padding="same", groups=3).detach().numpy(), x.detach())


def test_conv1d_equals_numpys_correlate() -> None:
    x, w = tensor(11), tensor(4)
    expected = np.correlate(x.detach().numpy(), w.detach().numpy(), "valid")
    y = F.conv1d(x.reshape(1, 1, 11), w.reshape(1, 1, 4))
    np.testing.assert_allclose(y.detach().numpy()[0, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.conv2d(tensor(4, 6), tensor(3, 4, 3, 3)), r"expected 3D \(unbatched\) or 4D \(batched\) input"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 5, 3, 3)), r"to have 5 channels"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 2, 3, 3), groups=2), r"groups to divide 3 output"),
        (lambda: F.conv2d(tensor(1, 4, 6, 2), tensor(3, 4, 3, 3)), r"kernel size can't be greater"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 4, 3, 3), tensor(4)), r"bias must have shape \(3,\)"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 4, 3, 3), stride=0), r"stride must be at least 1"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 4, 3, 3), padding=-1), r"padding must be at least 0"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 4, 3, 3), dilation=(1, 1, 1)), r"an int or 2 ints"),
        (lambda: F.conv2d(tensor(1, 4, 6, 6), tensor(3, 4, 3, 3), padding="same", stride=2), r"not supported for str"),
        (lambda: F.conv_transpose1d(tensor(1, 4, 6), tensor(3, 4, 3)), r"to have 3 channels"),
        (
            lambda: F.conv_transpose1d(tensor(1, 4, 6), tensor(4, 4, 3), output_padding=1),
            r"must be smaller than stride",
        ),
        (lambda: F.conv_transpose1d(tensor(1, 4, 1), tensor(4, 4, 3), padding=2), r"calculated output size"),
    ],
)
def test_mismatched_shapes_are_refused(call: Any, message: str) -> None:
    with pytest.raises(tl.errors.ShapeError, match=message):
        call()


def test_booleans_are_refused() -> None:
    with pytest.raises(tl.errors.DtypeError):
        F.conv1d(tl.ones(1, 1, 6, dtype=tl.bool), tl.ones(1, 1, 2, dtype=tl.bool))


def test_sizes_may_be_numpy_integers() -> None:
    x, w = tensor(1, 4, 6, 6), tensor(3, 4, 3, 3)
    expected = F.conv2d(x, w, stride=2).detach().numpy()
    np.testing.assert_array_equal(F.conv2d(x, w, stride=(np.int32(2), np.int64(2))).detach().numpy(), expected)
    for stride in (2.0, "2", True, None):
        with pytest.raises(tl.errors.ArgumentTypeError, match="stride"):
            F.conv2d(x, w, stride=stride)
