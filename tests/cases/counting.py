import numpy as np

from cases import booleans, case, integers, normal, uniform

case("bincount", lambda m, x: m.bincount(x), integers(20), grad=False)
case("bincount", lambda m, x: x.bincount(minlength=15), integers(20), grad=False)
case("bincount", lambda m, x: x.int().bincount(), integers(0), grad=False)
case("bincount", lambda m, x, w: x.bincount(w), integers(20), normal(20), grad=False)
case("bincount", lambda m, x, w: m.bincount(x, weights=w), integers(20), integers(20), grad=False)
case("histc", lambda m, x: m.histc(x, 5), normal(30), grad=False)
case("histc", lambda m, x: x.histc(bins=7, min=-1, max=1), normal(5, 6), grad=False)
case("histc", lambda m, x: x.histc(4), np.ones(3), grad=False)
case("histc", lambda m, x: x.histc(), uniform(50), grad=False)
case("histc", lambda m, x: x.histc(3), normal(0), grad=False)
case("histogram", lambda m, x: m.histogram(x, 5), normal(30), grad=False)
case("histogram", lambda m, x: x.histogram(7, range=(-1, 1), density=True), normal(5, 6), grad=False)
case(
    "histogram",
    lambda m, x, e, w: m.histogram(x, e, weight=w),
    normal(30),
    np.array([-1.0, 0, 0.5, 2]),
    uniform(30),
    grad=False,
)
case("histogram", lambda m, x: x.histogram(4), np.ones(3), grad=False)
case(
    "histogram",
    lambda m, x: x.histogram(m.linspace(0, 3, 4, dtype=x.dtype, device=x.device)),
    integers(20, high=4).astype(float),
    grad=False,
)
for _inputs in (
    integers(30, high=6),
    integers(3, 4),
    booleans(9),
    np.array([2.0, np.nan, 1.0, np.nan]),
    normal(0),
    normal(),
):
    case("unique", lambda m, x: m.unique(x), _inputs, grad=False)
    case("unique", lambda m, x: x.unique(return_inverse=True, return_counts=True), _inputs, grad=False)
    case("unique_consecutive", lambda m, x: m.unique_consecutive(x), _inputs, grad=False)
    case("unique_consecutive", lambda m, x: x.unique_consecutive(True, True), _inputs, grad=False)
for _dim in (0, 1, -1):
    _x = integers(6, 2, 2, high=2)
    case("unique", lambda m, x, d=_dim: x.unique(dim=d), _x, grad=False)
    case("unique", lambda m, x, d=_dim: m.unique(x, True, True, True, dim=d), _x, grad=False)
    case("unique_consecutive", lambda m, x, d=_dim: x.unique_consecutive(return_counts=True, dim=d), _x, grad=False)
