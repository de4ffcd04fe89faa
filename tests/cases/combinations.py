"""combinations, gcd and lcm, parts of floating-point numbers, powers, and pairwise distances."""

import numpy as np

from cases import away_from, case, distinct, integers, normal, uniform

for name in ("gcd", "lcm"):
    case(name, lambda m, a, b, f=name: getattr(m, f)(a, b), integers(2, 3, low=-20, high=20), integers(3), grad=False)
    case(name, lambda m, a, b, f=name: getattr(a, f + "_")(b), integers(4), integers(4, low=-9), grad=False)
    case(name, lambda m, a, b, f=name: getattr(a.to(m.int32), f)(b), integers(4), integers(4), grad=False)

EDGES = np.array([0.0, 1.0, -3.5, 1e-3, 1024.0])
case("frexp", lambda m, x: m.frexp(x).mantissa, normal(2, 3))
case("frexp", lambda m, x: tuple(x.frexp()), EDGES, grad=False)
case("nextafter", lambda m, a, b: (m.nextafter(a, b), a.nextafter(b)), normal(3), normal(3))
case("ldexp", lambda m, a, b: (m.ldexp(a, b), (a * 1).ldexp_(b)), normal(2, 3), integers(3, low=-3, high=4))
case("ldexp", lambda m, a, b: a.ldexp(b), normal(3), normal(3))
for name in ("deg2rad", "rad2deg"):
    case(name, lambda m, x, f=name: (getattr(m, f)(x), getattr(x * 1, f + "_")()), normal(2, 3) * 90)
    case(name, lambda m, x, f=name: getattr(x, f)(), integers(4), grad=False)
case("mvlgamma", lambda m, x: (m.mvlgamma(x, 3), (x * 1).mvlgamma_(2)), uniform(4, low=2.0, high=5.0))
case("mvlgamma", lambda m, x: m.special.multigammaln(x, 1), uniform(4, low=2.0, high=5.0))

case("combinations", lambda m, x: (m.combinations(x), m.combinations(x, 3), m.combinations(x, 2, True)), normal(4))
case("combinations", lambda m, x: (m.combinations(x, 0), m.combinations(x, 5), m.combinations(x, 1)), normal(4))
# PyTorch's backward fails with more columns
case("vander", lambda m, x: m.vander(x, 1) * x.unsqueeze(1), normal(3))
case("vander", lambda m, x: (m.vander(x), m.vander(x, N=4)), away_from((0.0,), 3), grad=False)
case("vander", lambda m, x: (m.vander(x), m.vander(x, 1), m.vander(x, 0)), integers(3), grad=False)
case("unravel_index", lambda m, i: m.unravel_index(i, (3, 4, 2)), integers(5, high=24), grad=False)
case("unravel_index", lambda m, i: m.unravel_index(i, 7), integers(2, 2, high=7), grad=False)

for p in (1, 2, 3.5, float("inf")):
    case("pdist", lambda m, x, p=p: m.nn.functional.pdist(x, p), distinct(4, 3) + 0.1)
    case("renorm", lambda m, x, p=p: m.renorm(x, p, 0, 1.5), distinct(3, 4) / 3 + 0.05)
case("pdist", lambda m, x: m.pdist(x), normal(1, 3))
case("renorm", lambda m, x: (x.renorm(2, -1, 0.7), (x * 1).renorm_(2, 1, 0.7)), normal(2, 3, 4))

PLACES = np.array([0, 2, 0])
for reduce in ("prod", "mean", "amax", "amin"):
    for include_self in (True, False):
        case(
            "index_reduce",
            lambda m, x, i, s, r=reduce, w=include_self: x.index_reduce(0, i, s, r, include_self=w),
            distinct(4, 2) + 0.1,
            PLACES,
            distinct(3, 2),
        )
case("index_reduce", lambda m, x, i, s: m.index_reduce(x, 1, i, s, "mean"), normal(2, 4), PLACES, normal(2, 3))
case("index_reduce", lambda m, x, i, s: (x * 1).index_reduce_(-1, i, s, "prod"), normal(2, 4), PLACES, normal(2, 3))

LOOSE = {"rtol": 1e-4, "atol": 1e-4}
LOWER = np.tril(normal(2, 3, 3)) + 3 * np.eye(3)
case("cholesky_solve", lambda m, b, l: m.cholesky_solve(b, l.tril()), normal(2, 3, 2), LOWER, **LOOSE)
case("cholesky_solve", lambda m, b, l: b.cholesky_solve(l.tril().mT, upper=True), normal(3, 2), LOWER[0], **LOOSE)
case("cholesky_inverse", lambda m, l: m.cholesky_inverse(l.tril()), LOWER[1], **LOOSE)
case("cholesky_inverse", lambda m, l: l.tril().mT.cholesky_inverse(True), LOWER[1], **LOOSE)
for p in (1, 2, 3.5, float("inf")):
    case("distance", lambda m, x, p=p: m.pdist(x, p), normal(5, 3))
case("distance", lambda m, x: m.pdist(x, float("inf")), normal(3, 0))
# PyTorch's gradient is 0 for integers below 0
case("ldexp", lambda m, a, b: (m.ldexp(a, b), (a * 1).ldexp_(b)), normal(2, 3), integers(3, high=4))
