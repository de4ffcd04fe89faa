"""Elementwise ops and activations beyond the cases: half precision, kinks and ties, and errors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import TallowError

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

rng = np.random.default_rng(7)
POSITIVE = rng.uniform(0.01, 4, 400).astype(np.float32)
UNIT = rng.uniform(-0.99, 0.99, 400).astype(np.float32)
ANY = rng.standard_normal(400).astype(np.float32) * 2
ANY = np.where(np.abs(ANY) < 0.05, np.float32(0.05), ANY)  # x - tanh(x) is dominated by rounding near 0

UNARY = {
    "abs neg exp exp2 expm1 sin cos tanh atan sinh cosh asinh square sigmoid erf erfc": ANY,
    "ceil floor trunc round sign relu": -ANY,
    "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma": POSITIVE,
    "asin acos atanh erfinv": UNIT,
}
ACTIVATIONS = (
    "relu relu6 leaky_relu elu celu selu gelu silu mish softplus softsign tanhshrink softshrink hardshrink hardtanh "
    "hardsigmoid hardswish logsigmoid"
)
HALVES = pytest.mark.parametrize("half", ["bfloat16", "float16"])


def as_ordered_integers(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return 16-bit floats as integers that count units in the last place."""
    bits = bits.astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def assert_within_an_ulp(ours: Any, theirs: Any) -> None:
    assert str(ours.dtype).removeprefix("tallow.") == str(theirs.dtype).removeprefix("torch.")
    mine = as_ordered_integers(ours.detach().array.view(np.int16))
    expected = as_ordered_integers(theirs.detach().view(torch.int16).numpy())
    nan = np.isnan(theirs.detach().float().numpy())
    assert np.abs(mine - expected)[~nan].max(initial=0) <= 1


def halves(values: np.ndarray[Any, Any], half: str) -> tuple[Any, Any]:
    return tl.tensor(values).to(getattr(tl, half)), torch.tensor(values).to(getattr(torch, half))


@HALVES
@pytest.mark.parametrize("name", [(n, x) for names, x in UNARY.items() for n in names.split()], ids=lambda p: p[0])
def test_unary_half_is_within_an_ulp(name: tuple[str, np.ndarray[Any, Any]], half: str) -> None:
    ours, theirs = halves(name[1], half)
    assert_within_an_ulp(getattr(tl, name[0])(ours), getattr(torch, name[0])(theirs))


@HALVES
@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activation_half_is_within_an_ulp(name: str, half: str) -> None:
    """Compare with float64 rounded once: some of PyTorch's own results are further off, such as gelu(-5)."""
    ours, theirs = halves(ANY, half)
    exact = theirs.double().requires_grad_()
    y, expected = getattr(tl.nn.functional, name)(ours.requires_grad_()), getattr(torch.nn.functional, name)(exact)
    assert_within_an_ulp(y, expected.to(theirs.dtype))
    y.sum().backward()
    expected.sum().backward()
    assert_within_an_ulp(ours.grad, exact.grad.to(theirs.dtype))


@HALVES
@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "mod", "lt", "eq"])
def test_operator_half_is_within_an_ulp(symbol: str, half: str) -> None:
    apply = getattr(operator, symbol)
    ours, theirs = halves(ANY, half)
    for other, their_other in (halves(POSITIVE, half), (1.5, 1.5)):
        y, expected = apply(ours, other), apply(theirs, their_other)
        if expected.dtype is torch.bool:
            assert y.tolist() == expected.tolist()
        else:
            assert_within_an_ulp(y, expected)


@HALVES
def test_softmax_half_is_within_an_ulp(half: str) -> None:
    ours, theirs = halves(ANY.reshape(20, 20), half)
    assert_within_an_ulp(ours.softmax(-1), theirs.softmax(-1))
    assert_within_an_ulp(ours.log_softmax(0), theirs.log_softmax(0))
    assert ours.softmax(-1, dtype=tl.float32).dtype is tl.float32


@HALVES
def test_nan_to_num_uses_the_limits_of_the_dtype(half: str) -> None:
    ours, theirs = halves(np.array([np.inf, -np.inf, np.nan, 1], np.float32), half)
    assert ours.nan_to_num().tolist() == theirs.nan_to_num().tolist()


TIES = np.array([0.0, 1.0, -1.0, 2.0, np.nan, 1.0])
OTHERS = np.array([0.0, 1.0, 1.0, -2.0, 1.0, np.nan])
KINKS = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda m, a, b: m.maximum(a, b),
        lambda m, a, b: m.minimum(a, b),
        lambda m, a, b: m.fmax(a, b),
        lambda m, a, b: m.fmin(a, b),
        lambda m, a, b: m.clamp(a, b),
        lambda m, a, b: m.clamp(a, max=b),
        lambda m, a, b: m.clamp(a, b, b - 0.5),
        lambda m, a, b: m.clamp(a, -1, 1) + b * 0,
        lambda m, a, b: m.copysign(a, b),
        lambda m, a, b: m.abs(a) * m.sign(b),
        lambda m, a, b: a**2 + b**0 + a.abs() ** b,
        lambda m, a, b: (a * 0) ** (b * 0) + (a * 0) ** 2,
        lambda m, a, b: m.xlogy(a, b.abs()),
        lambda m, a, b: m.atan2(a * 0, b * 0) + m.atan2(a, b),
    ],
)
def test_gradient_at_ties(call: Callable[..., Any]) -> None:
    ours = [tl.tensor(x, requires_grad=True) for x in (TIES, OTHERS)]
    theirs = [torch.tensor(x, requires_grad=True) for x in (TIES, OTHERS)]
    call(tl, *ours).sum().backward()
    call(torch, *theirs).sum().backward()
    for mine, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), expected.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", [*ACTIVATIONS.split(), "prelu", "threshold"])
def test_gradient_at_kinks(name: str) -> None:
    options = {"threshold": (0.5, 2.0)}.get(name, ())
    gradients = []
    for m in (tl, torch):
        x = m.tensor(KINKS, requires_grad=True)
        more = (m.tensor([0.25], dtype=m.float64),) if name == "prelu" else options
        getattr(m.nn.functional, name)(x, *more).sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-6)


def integers(m: Any) -> Any:
    return m.tensor([3, -2, 0])


def booleans(m: Any) -> Any:
    return m.tensor([True, False, True])


def floats(m: Any) -> Any:
    return m.tensor([1.5, -2.0, 0.0])


FLOATS_ONLY = "gelu silu mish elu celu selu softplus leaky_relu hardsigmoid hardswish hardshrink softshrink logsigmoid"
REFUSED = [
    lambda m: booleans(m) - booleans(m),
    lambda m: m.sub(booleans(m), booleans(m), alpha=2),
    lambda m: -booleans(m),
    lambda m: +booleans(m),
    lambda m: abs(booleans(m)),
    lambda m: booleans(m) // True,
    lambda m: booleans(m) % booleans(m),
    lambda m: booleans(m) ** booleans(m),
    lambda m: integers(m) // 0,
    lambda m: integers(m) % 0,
    lambda m: integers(m).fmod(0),
    lambda m: m.div(integers(m), 0, rounding_mode="trunc"),
    lambda m: integers(m) // integers(m),
    lambda m: integers(m) ** -1,
    lambda m: m.add(integers(m), integers(m), alpha=0.5),
    lambda m: m.addcdiv(integers(m), integers(m), integers(m)),
    lambda m: m.div(floats(m), 2, rounding_mode="up"),
    lambda m: m.lerp(floats(m), floats(m).double(), 0.5),
    lambda m: integers(m).add_(0.5),
    lambda m: integers(m).div_(2),
    lambda m: integers(m).exp_(),
    lambda m: floats(m).add_(m.zeros(2, 3)),
    lambda m: floats(m) + m.zeros(2),
    lambda m: floats(m) & floats(m),
    lambda m: ~floats(m),
    lambda m: floats(m) << 1,
    lambda m: booleans(m).ceil(),
    lambda m: booleans(m).round(),
    lambda m: integers(m).round(decimals=1),
    lambda m: integers(m).frac(),
    lambda m: m.isclose(floats(m), floats(m).double()),
    lambda m: m.isclose(floats(m), floats(m), rtol=-1.0),
    lambda m: m.heaviside(floats(m), integers(m)),
    lambda m: m.logaddexp(integers(m), integers(m)),
    lambda m: m.clamp(floats(m)),
    lambda m: m.where(integers(m), floats(m), 0.0),
    lambda m: floats(m).masked_fill(integers(m), 1.0),
    lambda m: floats(m).masked_fill(booleans(m), floats(m)),
    lambda m: floats(m).masked_fill_(m.zeros(2, 3).bool(), 1.0),
    lambda m: floats(m).masked_select(integers(m)),
    lambda m: floats(m).masked_scatter(booleans(m), m.zeros(1)),
    lambda m: floats(m).masked_scatter(booleans(m), m.zeros(3).double()),
    lambda m: booleans(m).relu(),
    *[lambda m, name=name: getattr(m.nn.functional, name)(integers(m)) for name in FLOATS_ONLY.split()],
    *[
        lambda m, name=name: getattr(m.nn.functional, name)(integers(m))
        for name in ["gelu", "silu", "mish", "elu", "softplus"]
    ],
    lambda m: m.nn.functional.gelu(floats(m), approximate="erf"),
    lambda m: m.nn.functional.hardtanh(floats(m), 1.0, -1.0),
    lambda m: m.nn.functional.softshrink(floats(m), -1.0),
    lambda m: m.nn.functional.celu(floats(m), 0.0),
    lambda m: m.nn.functional.rrelu(floats(m), 0.5, 0.1),
    lambda m: m.nn.functional.glu(floats(m)),
    lambda m: m.nn.functional.glu(m.tensor(1.0)),
    lambda m: m.nn.functional.prelu(m.zeros(2, 3), m.zeros(2)),
    lambda m: m.softmax(integers(m), 0),
    lambda m: m.softmax(floats(m), 1),
    lambda m: m.log_softmax(floats(m), -2),
    lambda m: m.pow(m.tensor([1.0], requires_grad=True), 2).pow_(2) + m.tensor([1.0], requires_grad=True).pow_(2),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_errors_as_in_pytorch(call: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(TallowError) as ours:
        call(tl)
    kinds = (RuntimeError, ValueError, IndexError, TypeError)
    assert any(isinstance(theirs.value, k) and isinstance(ours.value, k) for k in kinds), (theirs.value, ours.value)


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_draws_from_the_distribution(hard: bool) -> None:
    """The largest weight falls on each class as often as softmax says; one-hot weights pass the soft gradient on."""
    tl.manual_seed(1)
    logits = tl.tensor(np.tile(np.log([0.2, 0.5, 0.3]), (20_000, 1)).astype(np.float32), requires_grad=True)
    weights = tl.nn.functional.gumbel_softmax(logits, tau=0.7, hard=hard)
    np.testing.assert_allclose(weights.detach().numpy().sum(1), 1, rtol=1e-5)
    share = np.bincount(weights.detach().numpy().argmax(1), minlength=3) / 20_000
    np.testing.assert_allclose(share, [0.2, 0.5, 0.3], atol=0.015)  # four standard deviations
    if hard:
        assert set(np.unique(weights.detach().numpy().round(6))) == {0.0, 1.0}
    (weights * tl.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().sum() > 0
    np.testing.assert_allclose(logits.grad.numpy().sum(1), 0, atol=1e-5)


def test_rrelu_draws_a_slope_for_each_negative_element() -> None:
    tl.manual_seed(1)
    x = tl.full((10_000,), -1.0, requires_grad=True)
    y = tl.nn.functional.rrelu(x, 0.2, 0.6, training=True)
    slopes = -y.detach().numpy()
    assert 0.2 <= slopes.min() < 0.21
    assert 0.59 < slopes.max() <= 0.6
    np.testing.assert_allclose(slopes.mean(), 0.4, atol=0.005)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), slopes)
