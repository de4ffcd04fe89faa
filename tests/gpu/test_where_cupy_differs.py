"""Ops on `cuda` where CuPy's results differ from NumPy's: tallow's are still PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import cupy_behaviour

import tallow as tl
from tallow import kernels
from tallow.errors import LinAlgError
from tallow.nn import functional as F

NAN, INF = math.nan, math.inf
NEGATIVE_NAN = np.array([0xFFC00000], np.uint32).view(np.float32)  # the result of 0 / 0 on x86


def places(x: tl.Tensor) -> Any:
    return x.cpu().numpy()


class TestDivision:
    """Floor division and remainders equal those of Python's floats; floor(x / y) does not."""

    PAIRS = ((1.0, 0.1), (6.0, 0.1), (-1.0, 0.1), (5.0, INF), (-5.0, INF), (5.0, -3.0), (-5.0, 3.0), (-7.5, 2.5))

    @pytest.mark.parametrize("dtype", [tl.float64, tl.float32])
    def test_floats_divide_as_in_python(self, cuda: str, dtype: tl.dtype) -> None:
        x, y = (tl.tensor(column, dtype=dtype) for column in zip(*self.PAIRS, strict=True))
        exact = [(float(a), float(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        quotients, rests = [a // b for a, b in exact], [a % b for a, b in exact]
        dividends, by = x.to(cuda), y.to(cuda)
        for quotient in (dividends // by, tl.floor_divide(dividends, by), tl.div(dividends, by, rounding_mode="floor")):
            assert quotient.tolist() == quotients
        for remainder in (dividends % by, tl.remainder(dividends, by), dividends.clone().remainder_(by)):
            np.testing.assert_allclose(remainder.tolist(), rests, rtol=1e-6 if dtype == tl.float32 else 1e-15)
        assert (dividends // 0.1).tolist() == [float(a // np.asarray(0.1, x.numpy().dtype)) for a in x.numpy()]
        assert (1.0 // by).tolist() == [1.0 // b for _, b in exact]

    def test_quotients_by_zero_and_of_nan(self, cuda: str) -> None:
        x, y = tl.tensor([1.0, -1.0, 0.0, NAN, INF], device=cuda), tl.tensor([0.0, 0.0, 0.0, 1.0, 2.0], device=cuda)
        np.testing.assert_array_equal(places(x // y), [INF, -INF, NAN, NAN, NAN])  # torch.floor_divide's
        assert np.isnan(places(x % y)).all()

    def test_signs_of_zeros(self, cuda: str) -> None:
        remainder = tl.tensor([-4.0, 4.0], device=cuda) % tl.tensor([2.0, -2.0], device=cuda)
        assert np.signbit(places(remainder)).tolist() == [False, True]  # of the divisor

    def test_gradient(self, cuda: str) -> None:
        y = tl.tensor([0.1], dtype=tl.float64, device=cuda, requires_grad=True)
        (tl.ones(1, dtype=tl.float64, device=cuda) % y).sum().backward()
        assert y.grad is not None
        assert y.grad.tolist() == [-9.0]

    def test_integers_beyond_what_a_double_holds(self, cuda: str) -> None:
        x = tl.tensor([2**60 + 1, -(2**60) - 1, 7, -7], device=cuda)
        y = tl.tensor([10, 10, -4, 4], device=cuda)
        assert tl.fmod(x, y).tolist() == [7, -7, 3, -3]
        assert tl.fmod(x, 10).tolist() == [7, -7, 7, -7]
        assert tl.remainder(x, y).tolist() == [7, 3, -1, 1]
        assert tl.fmod(tl.tensor([200, 7], dtype=tl.uint8, device=cuda), 9).tolist() == [2, 7]


class TestOrder:
    @pytest.mark.parametrize("largest", [True, False])
    def test_topk_counts_nan_as_the_greatest(self, cuda: str, largest: bool) -> None:
        x = np.random.default_rng(0).permutation(400).astype(np.float32)
        x[[3, 77, 390]] = NAN
        values, indices = tl.topk(tl.tensor(x, device=cuda), 20, largest=largest)
        ranked = np.sort(x)[::-1] if largest else np.sort(x)
        np.testing.assert_array_equal(places(values), ranked[:20])
        np.testing.assert_array_equal(x[places(indices)], ranked[:20])

    def test_kthvalue_counts_nan_as_the_greatest(self, cuda: str) -> None:
        x = np.random.default_rng(0).permutation(400).astype(np.float32)
        x[[3, 77]] = NAN
        result = tl.kthvalue(tl.tensor(x, device=cuda), 11)
        assert result.values.item() == np.sort(x)[10]
        assert math.isnan(tl.kthvalue(tl.tensor(x, device=cuda), 399).values.item())

    def test_nan_of_either_sign_come_last(self, cuda: str) -> None:
        x = tl.tensor(np.concatenate([NEGATIVE_NAN, np.float32([2, NAN, 1])]), device=cuda)
        for values in (x, x[None]):
            assert places(tl.sort(values).values).reshape(-1)[:2].tolist() == [1, 2]
            assert tl.argsort(values).reshape(-1).tolist() == [3, 1, 0, 2]
            assert tl.argsort(values, descending=True).reshape(-1).tolist() == [0, 2, 1, 3]
        assert tl.median(tl.tensor(np.concatenate([NEGATIVE_NAN, np.float32([2, 5, 1])]), device=cuda)).isnan().item()
        assert tl.unique(x).cpu()[:2].tolist() == [1, 2]

    def test_isin_a_set_with_nan(self, cuda: str) -> None:
        tests = tl.tensor(np.concatenate([NEGATIVE_NAN, np.float32([2, 3])]), device=cuda)
        assert tl.isin(tl.tensor([1.0, 2.0, 3.0, NAN], device=cuda), tests).tolist() == [False, True, True, False]

    def test_the_greatest_of_many_with_nan_is_nan(self, cuda: str) -> None:
        x = np.zeros(2000, np.float32)
        x[[5, 1500]] = NAN
        values, indices = tl.max(tl.tensor(x, device=cuda), 0)
        assert math.isnan(values.item())
        assert indices.item() in (5, 1500)


class TestScatteredExtremes:
    """CuPy's atomic maxima and minima drop NaN, and round doubles to float."""

    @pytest.mark.parametrize("dtype", [tl.float32, tl.float64])
    @pytest.mark.parametrize("reduce", ["amax", "amin"])
    def test_every_bit_and_nan(self, cuda: str, dtype: tl.dtype, reduce: str) -> None:
        x = np.array([1 + 2.0**-40, -1 - 2.0**-40, 3, 4, 0, INF])
        src = np.array([-5, 2 + 2.0**-40, NAN, -NAN, -INF, 0, -2 - 2.0**-40])
        index = np.array([0, 1, 2, 3, 4, 5, 1])
        expected = x.astype(dtype.storage)
        with np.errstate(invalid="ignore"):
            getattr(np, {"amax": "maximum", "amin": "minimum"}[reduce]).at(expected, index, src.astype(dtype.storage))
        y = tl.scatter_reduce(
            tl.tensor(x, dtype=dtype, device=cuda), 0, tl.tensor(index, device=cuda),
            tl.tensor(src, dtype=dtype, device=cuda), reduce,
        )  # fmt: skip
        assert y.dtype == dtype
        np.testing.assert_array_equal(places(y), expected)


class TestLinearAlgebra:
    """cuSOLVER reports a failure only if asked."""

    SINGULAR = ((1.0, 2.0), (2.0, 4.0))

    @pytest.mark.parametrize(
        ("failing", "message"),
        [
            (tl.linalg.inv, "linalg.inv: singular matrix"),
            (lambda a: tl.linalg.solve(a, a), "linalg.solve: singular matrix"),
            (lambda a: tl.linalg.solve(a, a[0]), "linalg.solve: singular matrix"),
            (lambda a: tl.linalg.solve_triangular(tl.zeros_like(a), a, upper=True), "solve_triangular: singular"),
            (lambda a: tl.linalg.cholesky(-a), "linalg.cholesky: the input is not positive-definite"),
        ],
    )
    @pytest.mark.parametrize("batch", [False, True])
    def test_singular_matrices_raise(self, cuda: str, failing: Callable[..., Any], message: str, batch: bool) -> None:
        a = tl.tensor(self.SINGULAR, device=cuda)
        if batch:
            a = tl.stack([tl.eye(2, device=cuda), a])
            failing = failing if "cholesky" in message or "inv" in message else lambda a: tl.linalg.solve(a, a)
            message = message if "cholesky" in message or "inv" in message else "linalg.solve: singular matrix"
        with pytest.raises(LinAlgError, match=message):
            failing(a)

    def test_cond_of_a_singular_matrix(self, cuda: str) -> None:
        assert tl.linalg.cond(tl.tensor(self.SINGULAR, device=cuda), 1).item() == INF

    def test_systems_broadcast(self, cuda: str) -> None:
        rng = np.random.default_rng(0)
        for a, b in [((3, 3), (2, 3, 4)), ((2, 3, 3), (3, 4)), ((2, 1, 3, 3), (5, 3, 1)), ((2, 3, 3), (2, 3, 0))]:
            operands = [tl.tensor(rng.standard_normal(s), device=cuda, requires_grad=True) for s in (a, b)]
            x = tl.linalg.solve(*operands)
            np.testing.assert_allclose(
                places(x.detach()), np.linalg.solve(*(g.detach().cpu().numpy() for g in operands)), rtol=1e-9
            )
            x.sum().backward()
            assert [g.grad.shape for g in operands] == [a, b]
        vectors = tl.linalg.solve(tl.eye(3, device=cuda).expand(2, 3, 3), tl.ones(2, 3, device=cuda))
        assert vectors.tolist() == [[1, 1, 1], [1, 1, 1]]

    def test_eigenvalues_are_complex(self, cuda: str) -> None:
        a = tl.tensor([[2.0, 1.0], [0.0, 3.0]], device=cuda, requires_grad=True)
        values, vectors = tl.linalg.eig(a)
        assert values.dtype == vectors.dtype == tl.complex64
        np.testing.assert_allclose(sorted(values.real.tolist()), [2, 3], rtol=1e-6)
        np.testing.assert_allclose(
            places((a @ vectors.real).detach()), places((vectors * values).real.detach()), rtol=1e-5, atol=1e-6
        )
        tl.linalg.eigvals(a).sum().real.backward()
        np.testing.assert_allclose(places(a.grad), np.eye(2), atol=1e-6)


class TestCaptures:
    """Calls that CuPy computes on the host cannot be captured in a graph; ops compute them on the device."""

    @pytest.mark.parametrize(
        "step",
        [
            lambda x: tl.cat([x + i for i in range(20)]),
            lambda x: tl.stack([x + i for i in range(20)], dim=1),
            lambda x: tl.cat([x.chunk(4)[i % 4] for i in range(12)], dim=0),
            lambda x: x.masked_fill(x > 1, 7.0),
            lambda x: tl.where(x > 1, x, 0.0),
            lambda x: x.index_fill(0, INDEX, 5.0),
            lambda x: x.scatter(0, INDEX, 3.0),
            lambda x: write(x, x > 1),
            lambda x: write(x.reshape(2, 2), INDEX > 1),
            lambda x: gradient(x, lambda y: y.scatter(0, INDEX, y[:2] * y[1])),
            lambda x: gradient(x, lambda y: y.index_copy(0, INDEX, y[:2] * y[1])),
            lambda x: gradient(x, lambda y: tl.scatter_reduce(y, 0, INDEX, y[:2] * y[1], "amax", include_self=False)),
            lambda x: gradient(x, lambda y: y.index_put((INDEX,), y[:2] * y[1])),
            lambda x: gradient(x, lambda y: F.multi_margin_loss(y[None], INDEX[:1])),
            lambda x: gradient(x, lambda y: F.scaled_dot_product_attention(*[y.reshape(1, 1, 2, 2)] * 3, MASK)),
        ],
        ids=[
            "cat",
            "stack",
            "cat of views",
            "masked_fill",
            "where",
            "index_fill",
            "scatter a number",
            "mask",
            "mask of rows",
            "scatter",
            "index_copy",
            "scatter_reduce",
            "index_put",
            "multi_margin",
            "attention",
        ],
    )
    def test_a_step_in_a_graph(self, cuda: str, step: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(globals(), "INDEX", tl.tensor([1, 3], device=cuda))
        monkeypatch.setitem(globals(), "MASK", tl.zeros(2, 2, device=cuda))
        x = tl.arange(4.0, device=cuda)
        with kernels.off():
            expected = step(x + 1).tolist()
        step(x)
        g = tl.cuda.CUDAGraph()
        with tl.cuda.graph(g):
            y = step(x)
        x += 1
        g.replay()
        np.testing.assert_allclose(places(y), expected, rtol=1e-5, atol=1e-6)

    def test_a_mismatched_mask(self, cuda: str) -> None:
        with pytest.raises(IndexError):
            tl.zeros(3, device=cuda)[tl.ones(1, device=cuda) > 0] = 7

    def test_gradients_of_joining_and_splitting(self, cuda: str) -> None:
        x = tl.arange(24.0, device=cuda).requires_grad_()
        g = tl.cuda.CUDAGraph()
        x.grad = tl.zeros_like(x)
        with tl.cuda.graph(g):
            (tl.stack(x.unbind(0)) * tl.cat(x.split(2)) / 2).sum().backward()
        g.replay()
        assert x.grad.tolist() == list(range(24))


INDEX: Any = None
MASK: Any = None


def write(x: tl.Tensor, mask: tl.Tensor) -> tl.Tensor:
    y = x.clone()
    y[mask] = 7
    return y


def gradient(x: tl.Tensor, function: Callable[[tl.Tensor], tl.Tensor]) -> tl.Tensor:
    y = x.detach().clone().requires_grad_()
    (result,) = tl.autograd.grad(function(y).square().sum(), y)
    return result


def test_the_stand_in_differs_from_numpy() -> None:
    """The stand-in must differ from NumPy as CuPy's source does; else these tests would show nothing."""
    one, tenth = np.float64(1), np.float64(0.1)
    assert (cupy_behaviour.floor_divide(one, tenth), one // tenth) == (10, 9)
    assert cupy_behaviour.fmod(np.int64([2**60 + 1]), np.int64([10])).tolist() != [7]
    assert cupy_behaviour.argsort(np.concatenate([NEGATIVE_NAN, np.float32([1])])).tolist() == [0, 1]
    assert cupy_behaviour.clip(np.float32([5]), NAN, 3.0).tolist() == [3]
    assert cupy_behaviour.LINALG["cholesky"](np.float64([[-1, 0], [0, 1]])).tolist() == [[-1, 0], [0, 1]]
    assert cupy_behaviour.LINALG["eig"](np.eye(2))[0].dtype == np.complex128
    with pytest.raises(ValueError, match="must have"):
        cupy_behaviour.LINALG["solve"](np.eye(2), np.ones((3, 2, 1)))
