"""Complex numbers: calls whose inputs and results are real, so that gradients can be checked by finite differences."""

from __future__ import annotations

from typing import Any

from cases import case, normal, uniform


def whole(m: Any, x: Any) -> Any:
    """Return complex numbers whose parts are in the last dim of `x`."""
    return m.view_as_complex(x.contiguous())


case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x)), normal(3, 4, 2))
case("view_as_real", lambda m, x: m.view_as_real(whole(m, x) * whole(m, x)), normal(3, 2))
case("complex_of", lambda m, a, b: m.view_as_real(m.complex(a, b)), normal(3, 4), normal(4))
case("real_of", lambda m, x: (whole(m, x) ** 2).real, normal(3, 2))
case("imag_of", lambda m, x: (whole(m, x) ** 2).imag, normal(3, 2))
case("conjugate", lambda m, x: m.view_as_real(whole(m, x).conj_physical() * whole(m, x)), normal(3, 2))
case("angle", lambda m, x: whole(m, x).angle(), normal(5, 2))
case("angle", lambda m, x: x.angle(), normal(5))
case("view_as_complex", lambda m, x: whole(m, x).abs(), normal(5, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x).sgn()), normal(5, 2))
case("view_as_complex", lambda m, x, y: m.view_as_real(whole(m, x) * whole(m, y)), normal(3, 2), normal(3, 2))
case("view_as_complex", lambda m, x, y: m.view_as_real(whole(m, x) * y), normal(3, 2), normal(3))
case("view_as_complex", lambda m, x, y: m.view_as_real(whole(m, x) / whole(m, y)), normal(3, 2), 1 + uniform(3, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x).exp()), normal(3, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x).log()), normal(3, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x).sqrt()), 1 + uniform(3, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x).tanh()), normal(3, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x) ** 3), normal(3, 2))
case("view_as_complex", lambda m, x: m.view_as_real(whole(m, x).prod(0)), normal(3, 2, 2))
case("view_as_complex", lambda m, x, y: m.view_as_real(whole(m, x) @ whole(m, y)), normal(2, 3, 2), normal(3, 2, 2))
case("view_as_complex", lambda m, x: whole(m, x).var(0), normal(4, 3, 2))
case("view_as_complex", lambda m, x: m.linalg.vector_norm(whole(m, x)), normal(4, 2))
case("view_as_complex", lambda m, x: m.linalg.vector_norm(whole(m, x), 3), normal(4, 2))
case("view_as_complex", lambda m, x: m.view_as_real(m.linalg.inv(whole(m, x))), normal(2, 2, 2))
