import numpy as np

from cases import booleans, case, distinct, integers, normal

case("cumsum", lambda m, x: m.cumsum(x, 0), normal(3, 4))
case("cumsum", lambda m, x: x.cumsum(dim=-1), normal(3, 4))
case("cumsum", lambda m, x: (x * 1).cumsum_(1), normal(3, 4, 2))
case("cumsum", lambda m, x: x.cumsum(0), normal())
case("cumsum", lambda m, x: x.cumsum(1), normal(3, 0))
case("cumsum", lambda m, x: x.cumsum(0, dtype=m.float64), normal(3, 4))
case("cumsum", lambda m, x: x.cumsum(0), integers(3, 4), grad=False)
case("cumsum", lambda m, x: x.cumsum(0), booleans(3, 4), grad=False)
case("cumsum", lambda m, x: x.int().cumsum(0), integers(3, 4), grad=False)

case("cumprod", lambda m, x: m.cumprod(x, 0), normal(3, 4))
case("cumprod", lambda m, x: x.cumprod(dim=-1), normal(3, 4))
case(
    "cumprod", lambda m, x: x.cumprod(0), np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 3.0], [4.0, 5.0, 6.0], [0.0, 0.0, 1.0]])
)
case("cumprod", lambda m, x: (x * 1).cumprod_(1), normal(3, 4))
case("cumprod", lambda m, x: x.cumprod(0), normal())
case("cumprod", lambda m, x: x.cumprod(0, dtype=m.float64), normal(3, 4))
case("cumprod", lambda m, x: x.cumprod(0), integers(3, 4), grad=False)

for _name in ("cummax", "cummin"):
    case(_name, lambda m, x, f=_name: getattr(m, f)(x, 0), distinct(6, 4))
    case(_name, lambda m, x, f=_name: getattr(x, f)(dim=-1), distinct(3, 7))
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), normal())
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), normal(3, 0))
    case(_name, lambda m, x, f=_name: getattr(x, f)(1), integers(5, 20, high=4), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0), np.array([1.0, np.nan, 2.0, np.nan, 0.0]), grad=False)
    case(_name, lambda m, x, f=_name: getattr(x, f)(0).indices, booleans(5, 4), grad=False)

case("logcumsumexp", lambda m, x: m.logcumsumexp(x, 0), normal(5, 4))
case("logcumsumexp", lambda m, x: (x * 100).logcumsumexp(dim=-1), normal(3, 5), rtol=1e-4, atol=1e-4)
case("logcumsumexp", lambda m, x: x.logcumsumexp(0), normal())
