"""LU, Householder reflections and LDLᵀ, as LAPACK stores them."""

import numpy as np

from cases import case, normal

LOOSE = {"rtol": 1e-4, "atol": 1e-4}
_square = normal(2, 4, 4) + 3 * np.eye(4)
_symmetric = normal(2, 6, 6)
_symmetric = _symmetric + _symmetric.swapaxes(-1, -2)  # indefinite: some pivots have two rows
_right = normal(2, 4, 3)
_singular = np.array([np.eye(3), np.diag([1.0, 0, 2]), np.zeros((3, 3))])

for _shape in ((4, 3), (3, 5), (2, 3, 3), (0, 2)):
    case("geqrf", lambda m, a: (*m.geqrf(a), a.geqrf().tau), normal(*_shape), grad=False, **LOOSE)
case("geqrf", lambda m, a: tuple(m.geqrf(a)), np.diag([-2.0, 0.0, 3.0]), grad=False)
case("geqrf", lambda m, a, t: m.linalg.householder_product(a, t), normal(4, 3), normal(3), **LOOSE)
case("geqrf", lambda m, a, t: (m.orgqr(a, t), a.orgqr(t)), normal(2, 5, 3), normal(2, 2), **LOOSE)
for _left in (True, False):
    for _transpose in (True, False):
        case(
            "geqrf",
            lambda m, a, t, b, o=(_left, _transpose): m.ormqr(a, t, b if o[0] else b.mT, *o),
            normal(2, 4, 3), normal(2, 3), _right, **LOOSE,
        )  # fmt: skip
case("ldl_factor", lambda m, a: tuple(m.linalg.ldl_factor(a)), _symmetric, grad=False, **LOOSE)
case("ldl_factor", lambda m, a: m.linalg.ldl_factor_ex(a).info, _singular, grad=False)
_both = _symmetric + 1j * (normal(2, 6, 6) + 3 * np.eye(6))
for _hermitian in (False, True):
    case(
        "ldl_factor",
        lambda m, a, h=_hermitian: tuple(m.linalg.ldl_factor(a, hermitian=h)),
        _both + (_both.conj() if _hermitian else _both).swapaxes(-1, -2), grad=False, **LOOSE,
    )  # fmt: skip
    case(
        "ldl_solve",
        lambda m, a, b, h=_hermitian: m.linalg.ldl_solve(*m.linalg.ldl_factor(a, hermitian=h), b, hermitian=h),
        _both + (_both.conj() if _hermitian else _both).swapaxes(-1, -2), normal(6, 2) + 1j * normal(6, 2),
        grad=False, rtol=1e-3, atol=1e-3,
    )  # fmt: skip
case(
    "ldl_solve",
    lambda m, a, b: m.linalg.ldl_solve(*m.linalg.ldl_factor(a), b),
    _symmetric, normal(6, 2), grad=False, rtol=1e-3, atol=1e-3,
)  # fmt: skip
case("lu_factor", lambda m, a: m.linalg.lu_factor_ex(a).LU, _square, **LOOSE)
case("lu_factor", lambda m, a: m.linalg.lu_factor_ex(a)[1:], _singular, grad=False)
case("lu_factor", lambda m, a: tuple(m.lu_unpack(*m.linalg.lu_factor(a)))[1:], _square, **LOOSE)
case("lu_factor", lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a), unpack_data=False).P, normal(4, 3), grad=False)
case("linalg_solve", lambda m, a, b: m.linalg.solve_ex(a, b).result, _square, _right, **LOOSE)
case("linalg_solve", lambda m, a, b: m.linalg.solve_ex(a, b).info, _singular, normal(3, 2), grad=False)
