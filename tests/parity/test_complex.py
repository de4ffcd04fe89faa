"""Complex numbers, Fourier transforms and windows, compared with PyTorch: values, gradients and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RNG = np.random.default_rng(5)
CALLS: dict[str, Callable[..., Any]] = {
    "sums": lambda m, x, y: x + 2 * y - 1j * x,
    "quotient": lambda m, x, y: x / (y + 3) + 1 / (x + 4j),
    "powers": lambda m, x, y: x**3 + x**0.5 + x**y + (2 + 1j) ** x,
    "exponentials": lambda m, x, y: x.exp() + x.log() + x.log1p() + x.sqrt() + x.rsqrt() + x.expm1(),
    "trigonometry": lambda m, x, y: x.sin() + x.cos() + x.tan() + x.asin() + x.acos() + x.atan(),
    "hyperbolic": lambda m, x, y: x.sinh() + x.cosh() + x.tanh() + x.asinh() + x.acosh() + x.atanh(),
    "parts": lambda m, x, y: x.abs() + x.angle() + x.real * y.imag,
    "signs": lambda m, x, y: x.sgn() * y.conj(),
    "polar": lambda m, x, y: m.polar(x.abs(), y.imag) * m.complex(x.imag, y.real),
    "products": lambda m, x, y: x @ y.mH + m.einsum("ij,kj->ik", x, y),
    "reductions": lambda m, x, y: x.sum(0) + x.mean(1) + x.prod(0) + x.cumsum(0)[1] + x.cumprod(1)[2],
    "moments": lambda m, x, y: x.var(0) + x.std(1) + x.norm() + m.linalg.vector_norm(y, 3),
    "selection": lambda m, x, y: m.cat([m.where(x.real > 0, x, y), m.stack([x, y])[1]]).masked_fill(
        m.tensor([True, False, True]), 2j
    ),
    "solve": lambda m, x, y: m.linalg.solve(x, y) + m.linalg.inv(x) + m.linalg.det(x),
    "slogdet": lambda m, x, y: m.linalg.slogdet(x)[0] + m.linalg.slogdet(y)[1],
    "cholesky": lambda m, x, y: m.linalg.cholesky(x @ x.mH + 2 * m.eye(3, dtype=x.dtype)),
    "svd": lambda m, x, y: m.linalg.svdvals(x) + m.linalg.eigvalsh(x + x.mH),
    "eigenvalues": lambda m, x, y: (m.linalg.eigvals(x) ** 2).sum() + m.linalg.eigvals(x.real).prod(),
    "pinv": lambda m, x, y: m.linalg.pinv(x[:, :2]),
    "fft": lambda m, x, y: m.fft.fft(x, 4) + m.fft.ifft(y, 4, norm="ortho") + m.fft.fftn(m.fft.fftshift(x), (2, 4))[1],
    "rfft": lambda m, x, y: (
        m.fft.rfft(x.real, 5) + m.fft.rfft2(y.imag, (3, 4), norm="forward") + m.fft.ihfft(x.real, 4)
    ),
    "fft of no dims": lambda m, x, y: m.fft.fftn(x, dim=()) + m.fft.ifftn(x[0, 0]),
    "running logarithms of sums": lambda m, x, y: m.logcumsumexp(x * 3, 1) + m.logcumsumexp(y[:, :1] - 50, 0),
    "softsign": lambda m, x, y: m.nn.functional.softsign(x) * m.nn.functional.softsign(y[0] * 2),
    "softmax of real parts": lambda m, x, y: (
        x.softmax(1, dtype=m.float64) + m.nn.functional.softmin(y, 0, dtype=m.float64) + y.log_softmax(0, m.float64)
    ),
    "l1 loss": lambda m, x, y: m.nn.functional.l1_loss(x.real, y) + m.nn.functional.l1_loss(x, y.imag),
    "irfft": lambda m, x, y: m.fft.irfft(x, 5) + m.fft.hfft(y, 5) + m.fft.irfftn(x, (3, 5), norm="ortho"),
}
FIRST_ORDER = ("eigenvalues", "running logarithms of sums")  # PyTorch has a second derivative, tallow none


def results(m: Any, call: Callable[..., Any], arrays: list[Any], second: bool) -> list[Any]:
    inputs = [m.tensor(a, requires_grad=True) for a in arrays]
    y = call(m, *inputs)
    loss = (y.abs() ** 2).sum() + (y.real * 0.5).sum()
    gradients = m.autograd.grad(loss, inputs, create_graph=second, allow_unused=True)
    found = [y, *gradients]
    if second:
        total = sum((g.abs() ** 2).sum() for g in gradients if g is not None)
        found += m.autograd.grad(total, inputs, allow_unused=True)
    return [np.zeros(()) if t is None else t.detach().resolve_conj().numpy() for t in found]


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    arrays = [RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3)) for _ in range(2)]
    second = name not in FIRST_ORDER
    for mine, expected in zip(
        results(tl, CALLS[name], arrays, second), results(torch, CALLS[name], arrays, second), strict=True
    ):
        assert mine.dtype == expected.dtype or not expected.shape
        np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-8)


def test_reflections() -> None:
    a = RNG.standard_normal((2, 4, 3)) + 1j * RNG.standard_normal((2, 4, 3))
    a[1, 1:, 0] = 0
    for mine, expected in zip(tl.geqrf(tl.tensor(a)), torch.geqrf(torch.tensor(a)), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), atol=1e-12)


def test_uniform_numbers_have_both_parts() -> None:
    x = tl.empty(20000, dtype=tl.complex64).uniform_(1, 3)
    for part in (x.real, x.imag):
        assert 1 <= part.min() <= part.max() < 3
        assert part.mean().item() == pytest.approx(2, abs=0.02)


def test_a_running_sum_of_zeros_in_logarithms() -> None:
    values = np.array([-np.inf, -np.inf, 1 + 2j, -np.inf])
    expected = torch.logcumsumexp(torch.tensor(values), 0).numpy()
    np.testing.assert_allclose(tl.logcumsumexp(tl.tensor(values), 0).numpy(), expected)


def test_a_spectrum_of_one_number_along_a_dim() -> None:
    for m in (tl, torch):
        for name in ("fft", "rfft", "irfft"):
            with pytest.raises(IndexError, match="dim"):
                getattr(m.fft, name)(m.tensor(2.0))


@pytest.mark.parametrize("sym", [True, False])
def test_windows(sym: bool) -> None:
    for name in tl.signal.windows.__all__:
        options = {"a": (0.4, 0.5, 0.1)} if name == "general_cosine" else {}
        for n in (0, 1, 2, 7):
            mine = getattr(tl.signal.windows, name)(n, sym=sym, dtype=tl.float64, **options)
            expected = getattr(torch.signal.windows, name)(n, sym=sym, dtype=torch.float64, **options)
            np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=1e-12, atol=1e-12, err_msg=f"{name} {n}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options", [{}, {"center": False}, {"normalized": True}, {"win_length": 6}, {"hop_length": 3}], ids=str
)
def test_short_time_spectra_and_back(options: dict[str, Any]) -> None:
    signal = RNG.standard_normal((2, 41))
    window = np.hanning(options.get("win_length", 8) + 2)[1:-1]
    found = []
    for m in (tl, torch):
        x = m.tensor(signal, requires_grad=True)
        spectra = m.stft(x, 8, window=m.tensor(window), return_complex=True, **options)
        back = m.istft(spectra * (1 + 0.5j), 8, window=m.tensor(window), **options)
        (g,) = m.autograd.grad((back**2).sum() + spectra.abs().sum(), x)
        found.append([t.detach().resolve_conj().numpy() for t in (spectra, back, g)])
    for mine, expected in zip(*found, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)


def test_a_spectrum_of_one_frame_has_a_gradient_at_any_hop() -> None:
    signal, found = RNG.standard_normal((2, 41)), []
    for m in (tl, torch):
        x = m.tensor(signal, requires_grad=True)
        spectra = m.stft(x, 8, 1 << 40, window=m.ones(8, dtype=m.float64), return_complex=True)
        found.append(m.autograd.grad(spectra.abs().sum(), x)[0].numpy())
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtypes", [("float32", "float16"), ("bfloat16", "float32"), ("float16", "bfloat16")])
def test_spectra_of_halves_and_other_dtypes(dtypes: tuple[str, str]) -> None:
    signal, window, found = RNG.standard_normal((2, 41)), RNG.standard_normal(8), []
    for m in (tl, torch):
        x, w = (m.tensor(a).to(getattr(m, name)) for a, name in zip((signal, window), dtypes, strict=True))
        found.append(m.stft(x, 8, 3, window=w, return_complex=True).numpy())
    assert found[0].dtype == found[1].dtype == np.complex64
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_optimizers_take_complex_parameters(optimizer: str) -> None:
    start, goal = RNG.standard_normal(6).view(np.complex128), RNG.standard_normal(6).view(np.complex128)
    found = []
    for m in (tl, torch):
        z = m.nn.Parameter(m.tensor(start.copy()))
        steps = getattr(m.optim, optimizer)([z], lr=0.1)
        for _ in range(3):
            steps.zero_grad()
            ((z - m.tensor(goal)).abs() ** 2).sum().backward()
            steps.step()
        found.append(z.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-7)


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_lbfgs_takes_complex_parameters(line_search_fn: str | None) -> None:
    found = []
    for m in (torch, tl):
        z = m.tensor([1 + 2j, 3 - 1j], dtype=m.complex128, requires_grad=True)
        optimizer = m.optim.LBFGS([z], lr=0.3, max_iter=4, line_search_fn=line_search_fn)

        def closure(m: Any = m, z: Any = z, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            weights = m.tensor([1.0, 3.0], dtype=m.float64)
            loss = ((z - 1).abs() ** 2 * weights).sum() + (z.real * z.imag).sum() * 0.1
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(2)]
        shapes = [tuple(v.shape) for v in optimizer.state[z]["old_dirs"]]
        found.append((losses, z.detach().numpy(), shapes))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-9)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9)
    assert found[1][2] == found[0][2]


SPACED: dict[str, Callable[..., Any]] = {
    "to complex": lambda m: m.linspace(0, 1j, 3),
    "from complex": lambda m: m.linspace(1 + 1j, 2, 4, dtype=m.complex128),
    "logarithmic": lambda m: m.logspace(0, 1j, 3),
    "from a tensor": lambda m: m.linspace(m.tensor(1j), 2, 3),
}


@pytest.mark.parametrize("name", SPACED)
def test_spaced_numbers(name: str) -> None:
    ours, theirs = SPACED[name](tl), SPACED[name](torch)
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


def test_spaced_numbers_of_a_real_dtype_have_real_ends() -> None:
    for m in (torch, tl):
        with pytest.raises(RuntimeError, match="safely cast"):
            m.linspace(0, 1j, 3, dtype=m.float32)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.func.jvp
def test_functional_derivatives() -> None:
    found = []
    for m in (torch, tl):
        z = m.tensor([1 + 2j, 3 - 1j], dtype=m.complex128)
        value, change = m.func.jvp(lambda z: z**2 * z.conj(), (z,), (z * 1j,))
        back = m.func.vjp(lambda z: z**2, z)[1](z)[0]
        found.append([m.func.grad(lambda z: z.abs().sum())(z), value, change, back])
        with pytest.raises(RuntimeError, match="Expected all inputs to be real"):
            m.func.jacrev(lambda z: z**2)(z)
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


class _NotConjugate:
    """A product with 1j whose gradient lacks the conjugate."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1j

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 1j


def test_gradcheck() -> None:
    for m in (torch, tl):
        z = m.tensor([1 + 2j, 3 - 1j], dtype=m.complex128, requires_grad=True)
        x = m.tensor([0.5, 2.0], dtype=m.float64, requires_grad=True)
        assert m.autograd.gradcheck(lambda z, x: (z * z.conj() + z.exp() * x, z.abs()), (z, x))
        assert m.autograd.gradcheck(m.fft.rfft, x)
        assert m.autograd.gradgradcheck(lambda z: z**3, z)
        wrong = type("Wrong", (m.autograd.Function,), dict(vars(_NotConjugate)))
        assert not m.autograd.gradcheck(wrong.apply, z, raise_exception=False)
