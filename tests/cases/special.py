"""Special functions of PyTorch's torch.special. Several have no gradient there either."""

import numpy as np

from cases import case, integers, normal, uniform

spread = np.array([-30.0, -21.0, -19.5, -3.0, -0.4, 1e-3, 0.7, 1.0, 4.0, 12.0, 26.5])
above = np.array([1e-3, 0.3, 1.0, 1.5, 4.0, 19.0, 24.0, 26.0, 60.0])
# PyTorch's own j0 and y1 are off by 2e-7 where x > 5
LOOSE = {"grad": False, "rtol": 1e-4, "rtol64": 2e-5}

for _name in ("i0", "i0e", "i1", "i1e", "erfcx", "log_ndtr"):
    case(_name, lambda m, a, f=_name: getattr(m.special, f)(a), spread / (6 if _name == "erfcx" else 1), rtol=1e-4)
    case(_name, lambda m, a, f=_name: getattr(m.special, f)(a), integers(4), grad=False)
case("i0", lambda m, a: (m.i0(a), a.i0(), (a * 1).i0_(), m.special.modified_bessel_i0(a.detach())), normal(2, 3))
case("i1", lambda m, a: m.special.modified_bessel_i1(a.detach()), normal(2, 3), grad=False)
case("i0e", lambda m, a: (m.special.i0e(a), m.special.i1(a), m.special.i1e(a)), np.zeros(1), grad=False)
case("erfcx", lambda m, a: m.special.erfcx(a), np.array([27.0, 29.0, 1e3, 1e10]))
case("log_ndtr", lambda m, a: m.special.log_ndtr(a), np.array([-9.0, -1.0, 0.0, 9.0]), rtol=1e-4)
case("ndtri", lambda m, a: m.special.ndtri(a), np.array([0.02, 0.1, 0.3, 0.5, 0.6, 0.99]), rtol=1e-4)
case("ndtri", lambda m, a: m.special.ndtri(a), np.array([0.0, 1.0, -0.1, 1.1, np.nan]), grad=False)
for _name in ("modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"):
    case(_name, lambda m, a, f=_name: getattr(m.special, f)(a), above, grad=False)
    case(_name, lambda m, a, f=_name: getattr(m.special, f)(a), np.array([0.0, -1.0, np.nan]), grad=False)
for _name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
    case(_name, lambda m, a, f=_name: getattr(m.special, f)(a), above, **LOOSE)
    case(_name, lambda m, a, f=_name: getattr(m.special, f)(a), np.array([0.0, -1.0, np.nan]), **LOOSE)
case("spherical_bessel_j0", lambda m, a: m.special.spherical_bessel_j0(a), np.array([0.0, 1e-5, 0.4, 3.0]), grad=False)
case("airy_ai", lambda m, a: m.special.airy_ai(a), np.array([-9.0, -2.0, -1.7, 0.0, 1.2, 1.4, 8.0]), grad=False)

case("xlog1py", lambda m, a, b: (m.special.xlog1py(a, b), m.special.xlog1py(a, 2.5)), normal(3), uniform(2, 3))
case("xlog1py", lambda m, a, b: m.special.xlog1py(a, b), np.zeros(3), np.array([0.0, -2.0, np.nan]), grad=False)
case("zeta", lambda m, b: m.special.zeta(m.full_like(b, 2.5).detach(), b), uniform(2, 3, low=0.1, high=12.0))
case("zeta", lambda m, b: (m.special.zeta(3, b), m.special.zeta(40.5, b)), uniform(2, 3, low=5.0, high=30.0), rtol=1e-4)
case(
    "zeta",
    lambda m, a, b: m.special.zeta(a, b),
    np.array([1.0, 0.5, 2.0, 2.0, 2.5, 3.0]),
    np.array([2.0, 2.0, -1.0, -1.5, -1.5, -1.5]),
    grad=False,
)
_shapes = np.array([0.2, 1.0, 3.0, 3.0, 9.0, 50.0, 50.0, 400.0])
_ends = np.array([0.5, 0.1, 2.5, 30.0, 11.0, 43.0, 300.0, 401.0])
for _name in ("igamma", "igammac"):
    case(_name, lambda m, b, f=_name: getattr(m, f)(m.tensor(_shapes, dtype=b.dtype, device=b.device), b), _ends)
    case(
        _name,
        lambda m, a, b, f=_name: (getattr(a, f)(b), (a * 1).__getattribute__(f + "_")(b)),
        _shapes,
        _ends,
        grad=False,
    )
    case(
        _name,
        lambda m, a, b, f=_name: getattr(m.special, f.replace("igamma", "gammainc"))(a, b),
        np.array([0.0, 0.0, 1.0, 1.0, -1.0, np.inf]), np.array([0.0, 1.0, 0.0, np.inf, 1.0, 1.0]), grad=False,
    )  # fmt: skip

_points = np.array([[-1.3], [-1.0], [-0.4], [0.0], [0.5], [1.0], [1.2]])
_degrees = np.array([-1, 0, 1, 2, 5, 7, 9, 20])
NEAR = {"grad": False, "rtol": 1e-4, "atol": 1e-5}
for _kind in "tuvw":
    for _name in (f"chebyshev_polynomial_{_kind}", f"shifted_chebyshev_polynomial_{_kind}"):
        case(_name, lambda m, a, n, f=_name: getattr(m.special, f)(a, n), _points, _degrees, **NEAR)
        case(_name, lambda m, a, f=_name: getattr(m.special, f)(a, 3), _points, grad=False)
for _name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
    case(_name, lambda m, a, n, f=_name: getattr(m.special, f)(a, n), _points, _degrees, **NEAR)
    case(_name, lambda m, n, f=_name: getattr(m.special, f)(0.25, n), np.array([-1.0, 2.7, 200.0]), grad=False)
