"""Linear algebra: tests other than comparisons with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow.errors import LinAlgError, ShapeError

RNG = np.random.default_rng(3)


def matrix(*shape: int) -> tl.Tensor:
    return tl.as_tensor(RNG.standard_normal(shape))


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)


def test_det_of_a_singular_matrix_has_its_gradient_too() -> None:
    """d det / dA is the cofactor matrix; PyTorch's may be zero here, because it divides by the determinant."""
    for values in ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]):
        a = tl.tensor(values, dtype=tl.float64, requires_grad=True)
        tl.linalg.det(a).backward()
        (p, q), (r, s) = values
        assert a.grad is not None
        np.testing.assert_allclose(a.grad.numpy(), [[s, -r], [-q, p]], atol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_second_derivatives_of_det_of_any_rank(rank: int) -> None:
    """d² det / dA_ij dA_kl = Σ ε_ikm ε_jln A_mn for 3 by 3 matrices; PyTorch's is NaN for rank 1."""
    values = RNG.standard_normal((3, rank)) @ RNG.standard_normal((rank, 3))
    a = tl.tensor(values, requires_grad=True)
    (slope,) = tl.autograd.grad(tl.linalg.det(a), a, create_graph=True)
    signs = np.array([[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)])
    expected = np.einsum("ikm,jln,mn->ijkl", signs, signs, values)
    for i, j in np.ndindex(3, 3):
        (found,) = tl.autograd.grad(slope[i, j], a, retain_graph=True)
        np.testing.assert_allclose(found.numpy(), expected[i, j], atol=1e-12)


def test_factors_multiply_back() -> None:
    a = matrix(2, 5, 3)
    q, r = tl.linalg.qr(a)
    close(q @ r, a)
    close(q.mT @ q, tl.eye(3, dtype=tl.float64).expand(2, 3, 3))
    u, s, vh = tl.linalg.svd(a, full_matrices=False)
    close((u * s[:, None]) @ vh, a)
    full_u, _, full_vh = tl.linalg.svd(a)
    assert (full_u.shape, full_vh.shape) == ((2, 5, 5), (2, 3, 3))
    spd = a.mT @ a
    lower = tl.linalg.cholesky(spd)
    close(lower @ lower.mT, spd)
    values, vectors = tl.linalg.eigh(spd)
    close((vectors * values[:, None]) @ vectors.mT, spd)


def test_older_names_are_the_newer_functions() -> None:
    a = matrix(4, 3)
    spd = a.mT @ a
    close(tl.cholesky(spd), tl.linalg.cholesky(spd))
    close(spd.cholesky(upper=True), tl.linalg.cholesky(spd).mT)
    for mine, expected in zip(a.qr(), tl.linalg.qr(a), strict=True):
        close(mine, expected)
    assert tl.qr(a, some=False).Q.shape == (4, 4)
    u, s, v = tl.svd(a)
    close((u * s) @ v.mT, a)
    close(tl.chain_matmul(a, spd, a.mT), a @ spd @ a.mT)
    close(tl.chain_matmul(a), a)


def test_eigenvalues_of_real_matrices_are_complex() -> None:
    rotation = tl.tensor([[0.0, -1.0], [1.0, 0.0]])
    assert sorted(tl.linalg.eigvals(rotation).imag.tolist()) == [-1, 1]
    values, vectors = tl.linalg.eig(tl.eye(2))
    assert values.dtype is vectors.dtype is tl.complex64


@pytest.mark.parametrize("function", ["inv", "solve", "cholesky"])
def test_errors_for_singular_matrices_name_the_shape(function: str) -> None:
    singular = tl.zeros(3, 2, 2)
    arguments = (singular, tl.ones(3, 2, 1)) if function == "solve" else (singular,)
    with pytest.raises(tl.linalg.LinAlgError, match=rf"linalg.{function}: .*\(3, 2, 2\)"):
        getattr(tl.linalg, function)(*arguments)
    assert issubclass(LinAlgError, RuntimeError)


def test_nan_goes_through_a_solution() -> None:
    """NaN has no better result, and checking for it first would slow every call."""
    x = tl.tensor([[1.0, 2.0], [float("nan"), 1.0]])
    assert np.isnan(tl.linalg.inv(x).numpy()).any()
    assert np.isnan(tl.linalg.solve(x, tl.ones(2)).numpy()).any()


def test_cond_of_a_singular_matrix_is_infinite() -> None:
    assert tl.linalg.cond(tl.zeros(2, 2), 1).item() != tl.linalg.cond(tl.eye(2), 1).item() == 1
    assert np.isinf(tl.linalg.cond(tl.tensor([[1.0, 1.0], [1.0, 1.0]]), "fro").item())


def test_multi_dot_brackets_for_the_fewest_multiplications() -> None:
    from tallow.functions.products import _cheapest_splits

    # Cormen et al., figure 15.5: ((A1 (A2 A3)) ((A4 A5) A6))
    product = _cheapest_splits([30, 35, 15, 5, 10, 20, 25])
    assert (product[0, 5], product[0, 2], product[3, 5]) == (2, 0, 4)


def test_tensorinv_undoes_tensordot() -> None:
    a, x = matrix(2, 3, 6), matrix(6)
    close(tl.tensordot(tl.linalg.tensorinv(a), tl.tensordot(a, x, 1), 2), x)


def test_einsum_names_the_subscript_that_does_not_fit() -> None:
    with pytest.raises(ShapeError, match="'j' has size 4, which does not broadcast with previously seen size 3"):
        tl.einsum("ij,jk->ik", tl.ones(2, 3), tl.ones(4, 5))
    with pytest.raises(ShapeError, match="operand 0 has 2 dimensions, its subscripts name 3"):
        tl.einsum("ijk->i", tl.ones(2, 3))


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    sizes = dict(zip("abcd", draw(st.lists(st.integers(1, 3), min_size=4, max_size=4)), strict=True))
    operand = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map("".join)
    inputs = draw(st.lists(operand, min_size=1, max_size=3))
    output = "".join(draw(st.permutations(sorted(set("".join(inputs))))))[: draw(st.integers(0, 4))]
    return ",".join(inputs) + "->" + output, [tuple(sizes[x] for x in term) for term in inputs]


@given(equations())
def test_einsum_equals_numpys(case: tuple[str, list[tuple[int, ...]]]) -> None:
    equation, shapes = case
    arrays = [np.arange(np.prod(shape), dtype=np.float64).reshape(shape) - 3 for shape in shapes]
    ours = tl.einsum(equation, *map(tl.as_tensor, arrays))
    np.testing.assert_allclose(ours.numpy(), np.einsum(equation, *arrays), atol=1e-9)
