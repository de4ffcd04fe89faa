"""Elementwise ops and activations: values from Python's math module, identities, operators, and no warnings."""

from __future__ import annotations

import math
import operator
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
import tallow.nn.functional as F
from tallow.errors import ArgumentTypeError, MissingNameError, NumericError, ShapeError

FLOATS = st.floats(-1e6, 1e6, width=32)
EULER = 0.57721566490153286


def values(tensor: Any) -> Any:
    return tensor.detach().numpy()


@pytest.mark.parametrize(
    ("name", "reference", "points"),
    [
        ("erf", math.erf, np.linspace(-6.5, 6.5, 2001)),
        ("erfc", math.erfc, np.linspace(-6.5, 26, 2001)),
        ("lgamma", math.lgamma, np.concatenate([np.geomspace(1e-8, 1e8, 2001), 1 + np.linspace(-0.1, 1.1, 999)])),
        ("lgamma", math.lgamma, -np.linspace(0.05, 20.03, 501)),
    ],
    ids=["erf", "erfc", "lgamma", "lgamma of negatives"],
)
def test_special_functions_equal_those_of_math(name: str, reference: Callable[[float], float], points: Any) -> None:
    """float64 is exact to a few units in the last place (absolute near zeros of lgamma); float32 is float64 rounded."""
    exact = np.array([reference(x) for x in points])
    np.testing.assert_allclose(values(getattr(tl, name)(tl.tensor(points))), exact, rtol=2e-15, atol=5e-15)
    single = points.astype(np.float32)
    exact = np.array([reference(float(x)) for x in single]).astype(np.float32)
    result = values(getattr(tl, name)(tl.tensor(single)))
    if tl.get_default_device().type == "cuda":  # CuPy flushes subnormal numbers to zero
        result, exact = (np.where(abs(x) < np.finfo(np.float32).tiny, 0, x) for x in (result, exact))
    np.testing.assert_array_max_ulp(result, exact, maxulp=1)


def test_digamma_of_integers_is_a_harmonic_sum() -> None:
    n = np.arange(1, 60)
    harmonic = np.cumsum(1 / n) - 1 / n
    np.testing.assert_allclose(values(tl.digamma(tl.tensor(n.astype(np.float64)))), harmonic - EULER, rtol=1e-14)


def test_digamma_reflects() -> None:
    """ψ(1 - x) - ψ(x) = π / tan(πx)"""
    x = tl.linspace(0.05, 0.95, 19, dtype=tl.float64)
    difference = tl.digamma(1 - x) - tl.digamma(x)
    np.testing.assert_allclose(values(difference), np.pi / np.tan(np.pi * values(x)), rtol=1e-11, atol=1e-13)


def test_slope_of_digamma_at_one() -> None:
    x = tl.tensor([1.0, 0.5], dtype=tl.float64, requires_grad=True)
    tl.digamma(x).sum().backward()
    np.testing.assert_allclose(values(x.grad), [np.pi**2 / 6, np.pi**2 / 2], rtol=1e-14)


@given(st.floats(-5.5, 5.5))
def test_erfinv_undoes_erf(x: float) -> None:
    """The slope is as accurate as erf(x) allows, which is coarse near ±1."""
    y = tl.erf(tl.tensor(x, dtype=tl.float64))
    slope = 2 / math.sqrt(math.pi) * math.exp(-x * x)
    assert abs(float(tl.erfinv(y)) - x) <= 1e-14 * max(1.0, abs(x)) + 3 * np.spacing(abs(float(y))) / slope


@pytest.mark.parametrize("x", [1e-6, 1e-4, 1e-2, 0.1, 0.158, 0.16, 0.3, 0.9])
def test_slope_of_sinc_does_not_cancel(x: float) -> None:
    t = tl.tensor(x, dtype=tl.float64, requires_grad=True)
    tl.sinc(t).backward()
    angle = math.pi * x
    terms = [(-1) ** k * 2 * k / math.factorial(2 * k + 1) * angle ** (2 * k - 1) for k in range(1, 20)]
    assert float(t.grad) == pytest.approx(math.pi * sum(terms), rel=1e-12)


# ---------------------------------------------------------------------------------------------------------- operators


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(-20, 20).filter(bool))
def test_integer_division_is_pythons(numbers: list[int], divisor: int) -> None:
    x = tl.tensor(numbers)
    assert (x // divisor).tolist() == [n // divisor for n in numbers]
    assert (x % divisor).tolist() == [n % divisor for n in numbers]
    assert tl.div(x, divisor, rounding_mode="trunc").tolist() == [int(n / divisor) for n in numbers]
    assert tl.fmod(x, divisor).tolist() == [int(math.fmod(n, divisor)) for n in numbers]


@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_reflected_and_inplace_operators(symbol: str) -> None:
    """2 ∘ x and x ∘= 2 give the same as x ∘ 2; in place, the tensor and its memory stay the same objects."""
    plain, inplace = getattr(operator, symbol), getattr(operator, "i" + symbol)
    data = np.array([0.5, 2.0, 3.0])
    np.testing.assert_allclose(values(plain(2, tl.tensor(data))), plain(2, data))
    np.testing.assert_allclose(values(plain(tl.tensor(data), 2)), plain(data, 2))
    x = tl.tensor(data)
    before, memory = x, x.data_ptr()
    x = inplace(x, 2)
    assert x is before
    assert x.data_ptr() == memory
    np.testing.assert_allclose(values(x), plain(data, 2))


@pytest.mark.parametrize("symbol", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bit_operators(symbol: str) -> None:
    plain, inplace = getattr(operator, symbol), getattr(operator, "i" + symbol.rstrip("_"))
    data = np.array([0, 5, 9, 12])
    assert plain(tl.tensor(data), 3).tolist() == plain(data, 3).tolist()
    assert plain(3, tl.tensor(data)).tolist() == plain(3, data).tolist()
    assert inplace(tl.tensor(data), 3).tolist() == plain(data, 3).tolist()


def test_operators_with_unsupported_types() -> None:
    x = tl.ones(2)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "one"
    assert (x == "one") is False
    assert (x != None) is True  # noqa: E711 - tests the operator


def test_shapes_that_do_not_broadcast_raise() -> None:
    with pytest.raises(ShapeError, match=r"add.*\(2, 3\).*\(2,\)"):
        tl.ones(2, 3) + tl.ones(2)


def test_shapes_broadcast_in_any_number_of_dims_and_sizes() -> None:
    assert tl.broadcast_shapes((1,) * 40, (1 << 60, 1), 3) == (1,) * 38 + (1 << 60, 3)
    assert tl.broadcast_shapes() == ()
    for shapes in [((2, 3), (4,)), ((0,), (2,)), ((-1,), (2,))]:
        with pytest.raises(ShapeError, match="broadcast_shapes"):
            tl.broadcast_shapes(*shapes)


def test_integers_to_a_negative_power_are_refused() -> None:
    with pytest.raises(NumericError, match="convert the input to float"):
        tl.tensor([2]) ** -1


# ------------------------------------------------------------------------------------------------------------- names


ALIASES = {"absolute": "abs", "arccos": "acos", "multiply": "mul", "subtract": "sub", "clip": "clamp", "fix": "trunc"}


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases_are_offered_wherever_the_name_is(alias: str, name: str) -> None:
    assert getattr(tl, alias) is getattr(tl, name)
    assert getattr(tl.Tensor, alias) is getattr(tl.Tensor, name)
    assert callable(getattr(tl.Tensor, alias + "_"))


def test_inplace_functions_of_the_package_write_their_argument() -> None:
    x = tl.tensor([-4.0, 9.0])
    assert tl.sqrt_(tl.relu_(x)) is x
    assert tl.nan_to_num_(tl.clip_(x, 1, 2)).tolist() == [1, 2]
    assert x.tolist() == [1, 2]


def test_special_has_its_own_names() -> None:
    assert tl.special.expit is tl.sigmoid
    assert tl.special.gammaln is tl.lgamma
    assert {"erf", "psi", "softmax"} <= set(dir(tl.special))
    with pytest.raises(MissingNameError, match="airy"):
        _ = tl.special.airy


def test_functional_activations_work_in_place_on_demand() -> None:
    x = tl.tensor([-1.0, 2.0])
    assert F.relu(x).tolist() == [0, 2]
    assert x.tolist() == [-1, 2]
    assert F.relu(x, True) is x
    assert x.tolist() == [0, 2]
    assert F.elu_(x, 0.5) is x
    assert F.hardtanh(x, -1, 1.5, inplace=True).tolist() == [0, 1.5]


@pytest.mark.usefixtures("forget_new_ops")
def test_an_op_offered_later_is_found_in_functional() -> None:
    @tl.op("F")
    def twice_for_this_test(x):  # type: ignore[no-untyped-def]
        return 2 * x, lambda g: (2 * g,)

    assert F.twice_for_this_test(tl.ones(1)).tolist() == [2]


# ------------------------------------------------------------------------------------------------------- no warnings


def test_ops_do_not_warn_whatever_the_filters() -> None:
    """Overflow, division by zero and NaN raise no warning, forward and backward; NumPy's own state is unchanged."""
    state = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = tl.tensor([0.0, -1.0, 1e38], requires_grad=True)
        for f in (tl.log, tl.sqrt, tl.exp, tl.rsqrt, tl.square, tl.reciprocal):
            f(x).sum().backward()
        x.detach().double().mul(1e308).float()
    assert not np.isfinite(values(x.grad)).all()
    assert np.geterr() == state


@pytest.mark.native
def test_short_operators_do_not_warn() -> None:
    """In a separate process, because pytest has filters of its own."""
    program = "import tallow as tl; x = tl.tensor([3e38, 0.0]); print((x * x).tolist(), (x + x).tolist(), (x / x)[1])"
    command = [sys.executable, "-W", "default", "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stderr == ""
    assert process.stdout == "[inf, 0.0] [inf, 0.0] tensor(nan)\n"


def test_a_failing_op_leaves_numpys_state_alone() -> None:
    state = np.geterr()
    with pytest.raises(ShapeError):
        tl.add(tl.ones(2), tl.ones(3))
    assert np.geterr() == state


# -------------------------------------------------------------------------------------------------- softmax, selection


@given(st.lists(FLOATS, min_size=1, max_size=20))
def test_softmax_sums_to_one_for_any_logits(logits: list[float]) -> None:
    x = tl.tensor(logits)
    y = x.softmax(-1)
    assert float(y.sum()) == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(values(x.log_softmax(-1).exp()), values(y), rtol=1e-4, atol=1e-6)


def test_softmax_requires_a_dim() -> None:
    with pytest.raises(ArgumentTypeError, match="dim=-1"):
        tl.ones(2, 2).softmax()


@pytest.mark.cpu("CuPy flushes subnormal numbers to zero")
@given(st.lists(FLOATS, min_size=1), FLOATS, FLOATS)
def test_clamp_is_max_then_min(numbers: list[float], low: float, high: float) -> None:
    single = np.float32
    expected = [float(min(max(single(n), single(low)), single(high))) for n in numbers]
    assert tl.tensor(numbers).clamp(low, high).tolist() == expected


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_masked_scatter_puts_back_what_masked_select_takes(bits: list[bool]) -> None:
    mask = tl.tensor(bits)
    x = tl.arange(len(bits)).float()
    selected = x.masked_select(mask)
    assert selected.tolist() == [i for i, bit in enumerate(bits) if bit]
    assert tl.equal(tl.zeros(len(bits)).masked_scatter(mask, selected), x.masked_fill(~mask, 0))


def test_signs_of_zero_and_nan() -> None:
    x = tl.tensor([0.0, -0.0, math.nan, -2.0])
    assert x.sign().tolist() == [0, 0, 0, -1]
    assert x.signbit().tolist()[:2] == [False, True]
    assert math.copysign(1, float(tl.copysign(tl.tensor(0.0), -1.0))) == -1
