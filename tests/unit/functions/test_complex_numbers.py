"""Complex numbers: creation, views of parts, and gradients by PyTorch's convention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import NumericError, UnsupportedDtypeError


def test_complex_numbers_are_created_and_printed() -> None:
    assert repr(tl.tensor([1 + 2j, 3.5 - 4j], device="cpu")) == "tensor([1.0000+2.j, 3.5000-4.j])"
    assert tl.tensor(1j).dtype is tl.complex64
    assert tl.full((2,), 1j).tolist() == [1j, 1j]
    assert (tl.ones(2, dtype=tl.float64) * 1j).dtype is tl.complex128
    assert (tl.tensor([1, 2]) + 1j).dtype is tl.complex64
    assert complex(tl.tensor(1 + 2j)) == 1 + 2j


def test_parts_are_views() -> None:
    z = tl.tensor([1 + 2j, 3 - 1j])
    z.real = 5
    z.imag.add_(1)
    tl.view_as_real(z)[0, 1] = 7
    assert z.tolist() == [5 + 7j, 5 + 0j]
    assert tl.view_as_complex(tl.view_as_real(z)).tolist() == z.tolist()


def test_the_gradient_is_the_conjugate_of_the_derivative() -> None:
    z = tl.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (g,) = tl.autograd.grad(z**3, z, tl.ones(2, dtype=tl.complex64))
    np.testing.assert_allclose(g.numpy(force=True), np.conj(3 * z.numpy(force=True) ** 2), rtol=1e-6)
    (g,) = tl.autograd.grad((z.abs() ** 2).sum(), z)
    np.testing.assert_allclose(g.numpy(force=True), 2 * z.numpy(force=True), rtol=1e-6)


def test_a_real_operand_gets_a_real_gradient() -> None:
    x = tl.tensor([1.0, 2.0], requires_grad=True)
    (x * (2 + 3j)).sum().real.backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == (tl.float32, [2.0, 2.0])


def test_a_write_to_a_part_reaches_the_gradient() -> None:
    z = tl.tensor([1 + 2j], requires_grad=True)
    w = z * 1
    w.real.mul_(3)
    (g,) = tl.autograd.grad(w.real.sum() + w.imag.sum(), z)
    assert g.tolist() == [3 + 1j]


def test_complex_numbers_have_no_order() -> None:
    z = tl.tensor([1j, 2j])
    for call in (lambda: z < z, lambda: z.max(), lambda: z.sort(), lambda: tl.relu(z), lambda: z.clamp(0, 1)):
        with pytest.raises(tl.errors.UnsupportedDtypeError, match="not implemented for 'ComplexFloat'"):
            call()
    with pytest.raises(tl.errors.GraphError, match="only for real scalar outputs"):
        tl.tensor(1j, requires_grad=True).backward()


def test_an_optimizer_takes_complex_parameters() -> None:
    z = tl.nn.Parameter(tl.tensor([1 + 2j]))
    for _ in range(3):
        loss = (z - (3 - 1j)).abs().square().sum()
        loss.backward()
        with tl.no_grad():
            z -= 0.25 * z.grad
        z.grad = None
    np.testing.assert_allclose(z.numpy(force=True), [3 - 1j + (-2 + 3j) / 8], rtol=1e-5)


def test_eigenvalues_of_a_rotation_are_complex() -> None:
    values, vectors = tl.linalg.eig(tl.tensor([[0.0, -1.0], [1.0, 0.0]]))
    assert sorted(v.imag for v in values.tolist()) == [-1.0, 1.0]
    assert vectors.dtype is tl.complex64


def test_a_number_of_python_keeps_the_imaginary_part_or_is_refused() -> None:
    assert (float(tl.tensor(2 + 0j)), int(tl.tensor(2 + 0j)), complex(tl.tensor(2j))) == (2.0, 2, 2j)
    for kind in (float, int):
        with pytest.raises(NumericError, match="2j cannot be converted"):
            kind(tl.tensor(2j))


@pytest.mark.parametrize("function", [tl.softmax, tl.log_softmax])
def test_softmax_of_complex_numbers_is_refused(function: Any) -> None:
    with pytest.raises(UnsupportedDtypeError, match="softmax"):
        function(tl.tensor([1j, 2]), 0)
