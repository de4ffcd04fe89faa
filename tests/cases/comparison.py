# ruff: noqa: SIM300 - numbers on the left call the reflected operators
import numpy as np

from cases import booleans, case, distinct, integers, normal

some = np.array([-1.5, 0.0, 1.0, 2.0, np.inf, np.nan])
others = np.array([-1.5, 1.0, 0.0, np.nan, np.inf, np.nan])

case("eq", lambda m, a, b: (a == b, m.eq(a, b), a.eq(1), 2.0 == a), some, others, grad=False)
case("ne", lambda m, a, b: (a != b, m.ne(a, b), m.not_equal(a, b), a.ne(1)), some, others, grad=False)
case("lt", lambda m, a, b: (a < b, m.lt(a, b), m.less(a, b), a.lt(1), 1 > a), some, others, grad=False)
case("le", lambda m, a, b: (a <= b, m.le(a, b), m.less_equal(a, b), a.le(1)), some, others, grad=False)
case("gt", lambda m, a, b: (a > b, m.gt(a, b), m.greater(a, b), a.gt(1), 1 < a), some, others, grad=False)
case("ge", lambda m, a, b: (a >= b, m.ge(a, b), m.greater_equal(a, b), a.ge(1)), some, others, grad=False)
case("eq", lambda m, a, b: (a == b, a == 3, a < b, a >= 2.5), integers(3, 4), integers(4), grad=False)
case("eq", lambda m, a, b: (a == b, a == True, a < b), booleans(3, 4), booleans(4), grad=False)  # noqa: E712
case("lt", lambda m, a, b: a < b, normal(2, 1), normal(3), grad=False)
case("lt", lambda m, a, b: (a < b, a < 200, a > -200), integers(4).astype(np.int8), integers(4), grad=False)
case("eq", lambda m, a, b: (a * 1).eq_(b), some, others, grad=False)
case("ne", lambda m, a, b: (a * 1).ne_(b), some, others, grad=False)
case("lt", lambda m, a, b: (a * 1).lt_(b), some, others, grad=False)
case("le", lambda m, a, b: (a * 1).le_(b), some, others, grad=False)
case("gt", lambda m, a, b: (a * 1).gt_(b), some, others, grad=False)
case("ge", lambda m, a, b: (a * 1).ge_(b), some, others, grad=False)
case("isclose", lambda m, a, b: (m.isclose(a, b), a.isclose(b, equal_nan=True)), some, others, grad=False)
case("isclose", lambda m, a: m.isclose(a, a + 0.01, rtol=0.0, atol=0.011), normal(3), grad=False)
case("isclose", lambda m, a: (m.isclose(a, a + 1, rtol=0.2), m.isclose(a, a + 1, 0, 0)), integers(5), grad=False)
case(
    "allclose", lambda m, a: (m.allclose(a, a), m.allclose(a, a + 1), a.allclose(a + 1, atol=2)), normal(3), grad=False
)
case("equal", lambda m, a: (m.equal(a, a), a.equal(a + 1), m.equal(a, a[:2])), normal(3), grad=False)
case("logical_and", lambda m, a, b: (m.logical_and(a, b), a.logical_and(b)), some, others, grad=False)
case("logical_or", lambda m, a, b: (m.logical_or(a, b), a.logical_or(b)), some, others, grad=False)
case("logical_xor", lambda m, a, b: (m.logical_xor(a, b), a.logical_xor(b)), some, others, grad=False)
case("logical_not", lambda m, a: (m.logical_not(a), a.logical_not()), some, grad=False)
case("logical_and", lambda m, a, b: m.logical_and(a, b), integers(2, 3), booleans(3), grad=False)
case("logical_and", lambda m, a, b: (a * 1).logical_and_(b), some, others, grad=False)
case("logical_or", lambda m, a, b: (a * 1).logical_or_(b), some, others, grad=False)
case("logical_xor", lambda m, a, b: (a * 1).logical_xor_(b), some, others, grad=False)
case("logical_not", lambda m, a: (a * 1).logical_not_(), some, grad=False)
case("maximum", lambda m, a, b: (m.maximum(a, b), a.maximum(b)), distinct(3, 4), distinct(4) + 0.1)
case("minimum", lambda m, a, b: (m.minimum(a, b), a.minimum(b)), distinct(3, 4), distinct(4) + 0.1)
case("fmax", lambda m, a, b: (m.fmax(a, b), a.fmax(b)), distinct(3, 4), distinct(4) + 0.1)
case("fmin", lambda m, a, b: (m.fmin(a, b), a.fmin(b)), distinct(3, 4), distinct(4) + 0.1)
for name in ("maximum", "minimum", "fmax", "fmin"):
    case(name, lambda m, a, b, name=name: getattr(m, name)(a, b), some, others, grad=False)
    case(name, lambda m, a, b, name=name: getattr(m, name)(a, b), integers(2, 3), integers(3), grad=False)
