import numpy as np

from cases import away_from, booleans, case, integers, normal, uniform

positive = uniform(2, 3, low=0.1, high=4.0)
ends = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


def family(names: str, *inputs: np.ndarray, inplace_grad: bool = True) -> None:
    """Register cases of unary functions given as "name=alias": function, method, in place, integers, domain bounds."""
    for name, *aliases in (entry.split("=") for entry in names.split()):
        for x in inputs:
            case(name, lambda m, a, name=name: (getattr(m, name)(a), getattr(a, name)()), x)
            case(name, lambda m, a, name=name: getattr(a * 1, name + "_")(), x, grad=inplace_grad)
        case(name, lambda m, a, name=name: getattr(m, name)(a), integers(4, low=1), grad=False)
        case(name, lambda m, a, name=name: getattr(m, name)(a), ends, grad=False)
        case(name, lambda m, a, name=name: getattr(m, name)(a), normal(0, 2))
        for other in aliases:
            case(name, lambda m, a, f=other: (getattr(m, f)(a), getattr(a, f)()), inputs[0])
            case(name, lambda m, a, f=other: getattr(a * 1, f + "_")(), inputs[0], grad=inplace_grad)


family("exp exp2 expm1 sin cos tan atan=arctan sinh cosh tanh square", normal(2, 3), normal())
family("log log2 log10 log1p sqrt rsqrt reciprocal lgamma", positive, uniform(low=0.5, high=2.0))
family("asin=arcsin acos=arccos erfinv", uniform(2, 3, low=-0.9, high=0.9))
# PyTorch has no derivative for the in-place variants of these.
family("asinh=arcsinh", normal(2, 3), inplace_grad=False)
family("atanh=arctanh", uniform(2, 3, low=-0.9, high=0.9), inplace_grad=False)
family("acosh=arccosh", uniform(2, 3, low=1.1, high=4.0), inplace_grad=False)
family("abs=absolute neg=negative", away_from((0.0,), 2, 3))
family("sigmoid erf erfc sinc", away_from((0.0,), 2, 3) * 2, normal())
family("digamma", positive * 5)

between_poles = np.array([-0.5, -1.3, -1.8, -2.4, -7.7])
case("lgamma", lambda m, a: m.lgamma(a), between_poles)
case("digamma", lambda m, a: m.digamma(a), between_poles)
case("erfc", lambda m, a: (m.erf(a), m.erfc(a)), np.linspace(-9, 9, 37))
case("erfinv", lambda m, a: m.erfinv(a), np.array([-1.0, 1.0, 0.0, 1.5, -2.0]), grad=False)
case("erfinv", lambda m, a: m.erfinv(a), np.array([1e-12, 0.3, 0.7, 0.9, -0.99]))
case("sqrt", lambda m, a: (m.sqrt(a), m.exp(a), m.sinh(a)), booleans(3), grad=False)
case("square", lambda m, a: (m.square(a), a.square()), booleans(3), grad=False)
case("abs", lambda m, a: (abs(a), -a, +a, a.positive(), m.positive(a)), away_from((0.0,), 2, 3))
case("neg", lambda m, a: -a, integers(3).astype(np.uint8), grad=False)
case("sinc", lambda m, a: m.sinc(a), np.array([0.0, 1.0, 0.1, -2.5]))
case("logit", lambda m, a: (m.logit(a), a.logit()), uniform(2, 3, low=0.05, high=0.95))
case("logit", lambda m, a: (m.logit(a, 0.2), a.logit(eps=0.2)), np.array([0.05, 0.4, 0.6, 0.95]))
case("logit", lambda m, a: (a * 1).logit_(0.01), uniform(2, 3, low=0.05, high=0.95))
case("logit", lambda m, a: m.logit(a), np.array([0.0, 1.0, -1.0, np.nan]), grad=False)
case("xlogy", lambda m, a, b: (m.xlogy(a, b), a.xlogy(b), m.xlogy(a, 2.5), m.xlogy(3, b)), normal(3), positive)
case("xlogy", lambda m, a, b: (a * 1).xlogy_(b), normal(2, 3), positive)
case(
    "xlogy",
    lambda m, a, b: m.xlogy(a, b),
    np.array([0.0, 0.0, 0.0, 1.0]),
    np.array([0.0, -1.0, np.nan, 0.0]),
    grad=False,
)
case("xlogy", lambda m, a, b: m.xlogy(a, b), integers(3), integers(3, low=1), grad=False)
case("entr", lambda m, a: m.special.entr(a), positive)
case("entr", lambda m, a: m.special.entr(a), np.array([0, 1, 5]), grad=False)
case("entr", lambda m, a: m.special.entr(a), ends, grad=False)
case("logaddexp", lambda m, a, b: (m.logaddexp(a, b), a.logaddexp(b)), normal(2, 3), normal(3) * 50)
case("logaddexp2", lambda m, a, b: (m.logaddexp2(a, b), a.logaddexp2(b)), normal(2, 3), normal(3) * 50)
case("atan2", lambda m, a, b: (m.atan2(a, b), m.arctan2(a, b), a.atan2(b)), normal(2, 3), normal(3))
case("atan2", lambda m, a, b: (a * 1).atan2_(b), normal(2, 3), normal(3))
case("atan2", lambda m, a, b: m.atan2(a, b), integers(3, low=1), integers(3, low=1), grad=False)
case("hypot", lambda m, a, b: (m.hypot(a, b), a.hypot(b)), normal(2, 3), normal(3))
case("hypot", lambda m, a, b: (a * 1).hypot_(b), normal(2, 3), normal(3))
case("sigmoid", lambda m, a: m.special.expit(a), normal(3))
case("erf", lambda m, a: (m.special.erf(a), m.special.erfc(a), m.special.erfinv(a * 0.1)), uniform(3))
case("lgamma", lambda m, a: (m.special.gammaln(a), m.special.digamma(a), m.special.psi(a)), positive)
case(
    "logit", lambda m, a: (m.special.logit(a), m.special.sinc(a), m.special.xlogy(a, a)), uniform(3, low=0.1, high=0.9)
)
